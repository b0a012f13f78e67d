"""A thinking block is sent only behind the prefix it was produced under; where it is demanded, it is not missing.

Judged by the scripted provider's own check, which signs what stands before a block.
"""

from itertools import pairwise

import pytest

import refold
from refold import policies
from refold.testing.provider._thinking import misplaced, missing, signature

POLICIES = policies.names()
MODELS = {
    "old": "claude-sonnet-4-5-20250929",
    "adaptive": "claude-opus-4-8",
    "preserving": "claude-opus-5-5",
    "fable": "us.anthropic.claude-fable-5-1-20260901-v1:0",
}
WINDOW = 12_000
SYSTEM = "You are a careful engineer."
TOOLS = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]
LOG = "2026-01-01 12:00:00 worker {n} wrote 17 rows to orders.csv and found an ERROR in line {n}\n"


class Agent:
    """An agent against a provider that signs thinking: it keeps all messages, and sends what the plans in force make."""

    def __init__(self, model, policy="refold", reminder=""):
        self.model, self.policy, self.reminder = model, policy, reminder
        self.messages, self.plans, self.compactions = [], (), 0
        self.steps = 0

    def request(self):
        view = self.messages
        if self.plans:
            view = refold.apply(self.plans[-1], self.messages, plans=self.plans[:-1]).messages
        return self.body(view)

    def body(self, view):
        thinking = {"type": "enabled", "budget_tokens": 2_000}
        return {"model": self.model, "system": SYSTEM, "tools": TOOLS, "messages": list(view), "thinking": thinking}

    def user(self, text):
        self.messages = [*self.messages, {"role": "user", "content": text}]

    def answer(self, *, calls=1, interleaved=False):
        """Have the provider answer what would be sent now, after checking it."""
        self.check(self.request())
        self.steps += 1
        number, body = self.steps, self.request()
        thought = f"Step {number} comes next."
        block = {"type": "thinking", "thinking": thought, "signature": signature(body, thought)}
        words = [{"type": "text", "text": f"I take step {number}."}]
        content = [*words, block] if interleaved else [block, *words]
        ids = [f"toolu_{number}_{place}" for place in range(calls)]
        content += [{"type": "tool_use", "id": id, "name": "read", "input": {"path": f"src/{id}.py"}} for id in ids]
        if interleaved:
            body = {**body, "messages": [*body["messages"], {"role": "assistant", "content": words}]}
            block["signature"] = signature(body, thought)
        self.messages = [*self.messages, {"role": "assistant", "content": content}]
        if ids:
            text = "".join(LOG.format(n=f"{number}-{line}") for line in range(25))
            results = [{"type": "tool_result", "tool_use_id": id, "content": text} for id in ids]
            results += [{"type": "text", "text": self.reminder}] if self.reminder else []
            self.messages = [*self.messages, {"role": "user", "content": results}]

    def check(self, body):
        assert misplaced(body) == []
        assert missing(body) is None
        assert refold.violations(body["messages"], format="anthropic") == ()

    def compact(self, **options):
        result = refold.compact(
            self.messages, format="anthropic", model=self.model, policy=self.policy, window=WINDOW, plans=self.plans,
            system=SYSTEM, tools=TOOLS, summarize=lambda need: "The work so far went well. " * 8, force=True, **options,
        )  # fmt: skip
        assert not result.plan.empty
        self.plans = result.plans
        self.compactions += 1
        self.check(self.body(result.messages))
        return result

    def work(self, steps, **how):
        for _ in range(steps):
            self.answer(**how)


def begun(model, policy, steps=12, **how):
    agent = Agent(MODELS[model], policy)
    agent.user("Port the parser. Never touch legacy.py.")
    agent.work(steps, **how)
    return agent


def thoughts(body):
    return [
        block["thinking"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "thinking"
    ]


everywhere = pytest.mark.parametrize("policy", POLICIES)
each_model = pytest.mark.parametrize("model", MODELS)


@everywhere
@each_model
def test_a_compaction_within_a_tool_loop_is_accepted_and_so_is_what_follows(model, policy):
    agent = begun(model, policy)
    agent.compact()
    agent.work(3)
    agent.check(agent.request())
    assert len(thoughts(agent.request())) >= 3  # what was produced under the plan is preserved


@everywhere
@each_model
def test_words_beside_results_end_no_tool_loop(model, policy):
    agent = Agent(MODELS[model], policy, reminder="<system-reminder>Keep the list up to date.</system-reminder>")
    agent.user("Port the parser. Never touch legacy.py.")
    agent.work(12)
    agent.compact()
    agent.work(3)
    agent.check(agent.request())


@everywhere
@each_model
def test_a_compaction_at_the_border_of_a_turn_is_accepted(model, policy):
    agent = begun(model, policy)
    agent.answer(calls=0)
    agent.user("Now the tests.")
    agent.compact()
    agent.work(3)
    agent.check(agent.request())


@everywhere
@pytest.mark.parametrize("model", [model for model in MODELS if model != "old"])  # manual thinking comes first
def test_parallel_calls_and_words_before_thinking_are_accepted(model, policy):
    agent = begun(model, policy, 8, calls=2, interleaved=True)
    agent.compact()
    agent.work(3, calls=2, interleaved=True)
    agent.check(agent.request())


@everywhere
@each_model
def test_a_second_and_a_third_compaction_are_accepted(model, policy):
    agent = begun(model, policy)
    for _ in range(3):
        agent.compact()
        agent.work(6)
    agent.check(agent.request())
    assert agent.compactions == 3


@everywhere
@each_model
def test_a_rewind_loses_the_thinking_that_was_produced_under_the_plan(model, policy):
    agent = begun(model, policy)
    agent.compact()
    agent.work(3)
    before = thoughts({"messages": agent.messages})
    back = refold.rewind(agent.messages, agent.plans, to=0, format="anthropic")
    body = agent.body(back)
    agent.check(body)
    if model in ("preserving", "fable"):
        assert thoughts(body) == before[:12]
    else:
        assert back == agent.messages


@everywhere
def test_a_rewind_of_the_newest_of_two_plans_keeps_what_the_older_one_kept(policy):
    agent = begun("preserving", policy)
    agent.compact()
    agent.work(6)
    between = thoughts(agent.request())
    agent.compact()
    agent.work(2)
    back = refold.rewind(agent.messages, agent.plans, format="anthropic")
    agent.check(agent.body(back))
    assert thoughts(agent.body(back)) == between


@everywhere
@each_model
def test_who_knows_the_view_alone_may_compact_it_again(model, policy):
    agent = begun(model, policy)
    for _ in range(3):
        agent.messages = agent.compact().messages
        agent.plans = ()
        agent.work(6)
    agent.check(agent.request())


@each_model
def test_the_policy_may_change_from_one_compaction_to_the_next(model):
    agent = begun(model, POLICIES[0])
    for policy in POLICIES[1:]:
        agent.policy = policy
        agent.compact()
        agent.work(5)
    agent.check(agent.request())


@everywhere
@each_model
def test_a_branch_from_the_originals_is_accepted_under_a_plan_of_its_own(model, policy):
    agent = begun(model, policy)
    branch = Agent(agent.model, policy)
    branch.messages, branch.steps = agent.messages[:21], agent.steps
    agent.compact()
    agent.work(2)
    branch.compact()
    branch.work(3)
    branch.check(branch.request())


@everywhere
def test_a_plan_survives_a_restart_as_json(policy):
    agent = begun("preserving", policy)
    agent.compact()
    agent.work(2)
    agent.plans = tuple(refold.load_plan(refold.dump_plan(plan)) for plan in agent.plans)
    agent.work(2)
    agent.compact()
    agent.check(agent.request())


@everywhere
def test_a_model_that_is_not_named_is_taken_for_a_current_one(policy):
    agent = begun("preserving", policy)
    result = refold.compact(
        agent.messages, policy=policy, window=WINDOW, force=True, summarize=lambda need: "All went well so far. " * 8
    )
    assert misplaced(agent.body(result.messages)) == []


def test_thinking_before_the_first_change_stays():
    agent = begun("preserving", "refold")
    result = refold.compact(agent.messages, model=agent.model, policy="wolffish", window=WINDOW, force=True)
    first = next(place for place, (a, b) in enumerate(zip(result.messages, agent.messages, strict=False)) if a is not b)
    kept = thoughts({"messages": result.messages})
    assert kept == thoughts({"messages": agent.messages[:first]}) != []


def test_the_room_of_thinking_that_has_to_leave_is_filled():
    """Thinking of 600 tokens a step leaves with any plan: what it took goes to outputs, and the goal is filled."""
    body = "\n".join(f"value_{n} = compute({n})" for n in range(60))
    messages = [{"role": "user", "content": "Mend the parser. Never push."}]
    for n in range(30):
        thought = {"type": "thinking", "thinking": f"consider {n} " * 200, "signature": "c2ln"}
        call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": f"src/part{n}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{n} {body}"}
        messages += [{"role": "assistant", "content": [thought, call]}, {"role": "user", "content": [result]}]
    bound = refold.compact(messages, model="claude-opus-5-5", window=40_000, budget=12_000, force=True)
    assert not thoughts({"messages": bound.messages})
    assert 0.95 * 12_000 <= bound.plan.sizes.after <= 12_000


def test_what_is_not_compacted_keeps_its_thinking():
    agent = begun("preserving", "refold", 3)
    result = refold.compact(agent.messages, model=agent.model, window=200_000)
    assert all(new is old for new, old in zip(result.messages, agent.messages, strict=True))


def test_bedrock_reasoning_obeys_the_same_law():
    agent = begun("preserving", "refold")
    messages = [bedrock(message) for message in agent.messages]
    for model in ("us.anthropic.claude-opus-5-5-v1:0", None):
        result = refold.compact(messages, format="bedrock", model=model, window=WINDOW, force=True)
        changed = next(place for place, (a, b) in enumerate(zip(result.messages, messages, strict=False)) if a is not b)
        assert not any(
            "reasoningContent" in block for message in result.messages[changed:] for block in message["content"]
        )
        assert refold.violations(result.messages, format="bedrock") == ()
    old = refold.compact(
        messages, format="bedrock", model="anthropic.claude-3-7-sonnet-20250219-v1:0", window=WINDOW, force=True
    )
    assert any("reasoningContent" in block for message in old.messages for block in message["content"])


def bedrock(message):
    if isinstance(message["content"], str):
        return {"role": message["role"], "content": [{"text": message["content"]}]}
    return {"role": message["role"], "content": [converted(block) for block in message["content"]]}


def converted(block):
    match block["type"]:
        case "thinking":
            inner = {"text": block["thinking"], "signature": block["signature"]}
            return {"reasoningContent": {"reasoningText": inner}}
        case "text":
            return {"text": block["text"]}
        case "tool_use":
            return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
        case _:
            return {"toolResult": {"toolUseId": block["tool_use_id"], "content": [{"text": block["content"]}]}}


def test_a_plan_is_the_same_value_each_time():
    agent = begun("preserving", "refold")
    made = [refold.plan(agent.messages, model=agent.model, window=WINDOW, force=True) for _ in range(2)]
    assert all(a == b for a, b in pairwise(made))
