"""Runs one case through the public verbs under one policy, and returns the output and the facts seen."""

import copy
import json

import refold
from refold import policies
from refold.core.events import CompactionApplied
from refold.core.policy import Policy, Step
from refold.errors import RefoldError, SummaryRefused
from refold.models.provider_errors import classify_response
from refold.recovery._run import LearnedWindows, recovering
from refold.stages.clear import Clear
from refold.stages.deduplicate import DeduplicateReads
from tests.cases import sessions
from tests.cases.stubs import Provider, Summarizer, settings, trigger

COMPACTING = {"compact", "truncate", "compact_twice", "auto", "session", "loop"}  # what a policy decides


def policies_for(case):
    """Return the policies that a case is run under: all for what a policy decides, none for the rest."""
    return policies.names() if case["op"] in COMPACTING else ("-",)


def run(case, policy):
    """Return the output and the facts seen.

    An error of refold's is an output only where a check names it, as in "max_tokens_or_error"; else it is raised.
    """
    before = copy.deepcopy(case)
    try:
        out, seen = globals()[f"_{case['op']}"](case, policy)
    except RefoldError as error:
        if not any(check["type"].endswith("_or_error") for check in case["checks"]):
            raise
        out, seen = case["messages"], {"error": str(error)}
    assert case == before, "the input was changed"
    return out, {"exception": None} | seen


def _compact(case, policy, summarize=True):
    stub = Summarizer(case)
    room = case["context_window"] - case.get("max_output_tokens", 0)
    given = {
        "format": case["format"],
        "policy": policy,
        "model": case.get("model"),
        "budget": room,
        "system": case.get("system"),
        "tools": case.get("tools"),
        "force": True,
        "alternate": bool(case.get("options", {}).get("strict_alternation")),
    }
    try:
        result = refold.compact(case["messages"], summarize=stub if summarize else None, **given)
    except SummaryRefused:  # the remedy that the error names, and what recovery does
        result = refold.compact(case["messages"], **given)
    assert result.sizes.after <= room
    assert refold.rewind(result) == case["messages"]
    return result.messages, {
        "system": result.system,
        "count": lambda messages: refold.count(messages, format=case["format"]),
        "removed_messages_covered": _covered(case, result, stub),
        **stub.seen(result.messages),
    }


def _truncate(case, policy):
    return _compact(case, policy, summarize=False)


def _compact_twice(case, policy):
    first, seen = _compact(case, policy)
    second, _ = _compact(case, policy)
    return first, seen | {"deterministic": json.dumps(first) == json.dumps(second)}


def _stage(case, stage):
    policy = Policy("one stage", (Step(stage),))
    plan = refold.plan(case["messages"], format=case["format"], policy=policy, window=1_000_000, force=True)
    return refold.apply(plan, case["messages"], format=case["format"]).messages, {}


def _prune(case, _):
    return _stage(case, Clear("[Tool result cleared]", keep=1, saving=0))


def _dedupe(case, _):
    return _stage(case, DeduplicateReads("[File {path} - refer to latest read below]", saving=0.0))


def _repair(case, _):
    result = refold.repair(case["messages"], format=case["format"])
    stored = refold.load_plan(refold.dump_plan(result.plan))
    again = refold.apply(stored, case["messages"], format=case["format"])
    return result.messages, {
        "repairs": len(result.plan.edits),
        "store_round_trip": again.messages == result.messages,
    }


def _auto(case, policy):
    options, usage = case.get("options", {}), case.get("usage")
    if usage is not None and "usage_covers_messages" in options:
        usage = refold.Usage(
            usage["prompt_tokens"], usage["completion_tokens"], covers=options["usage_covers_messages"]
        )
    known = refold.window(
        case.get("model") or "unknown", override=case["context_window"], allocated=options.get("num_ctx")
    )
    reserve = min(options.get("max_output_tokens_model", 0), known.window // 4)
    given = {
        "format": case["format"],
        "policy": trigger(policy, case),
        "budget": refold.Budget(known.window, reserve),
        "system": case.get("system"),
        "tools": case.get("tools"),
        "usage": usage,
    }
    check = refold.check(case["messages"], **given)
    seen = {"should_compact": check.due, "used_tokens": check.tokens, "input_budget": check.limit}
    if not any(name["type"] == "unchanged" for name in case["checks"]):
        return case["messages"], seen  # the decision is all that is judged
    return refold.compact(case["messages"], summarize=Summarizer(case), **given).messages, seen


def _estimate(case, _):
    return case["messages"], {
        "estimate": refold.count(
            case["messages"], format=case["format"], system=case.get("system"), tools=case.get("tools")
        )
    }


def _model_window(case, _):
    windows = {}
    for check in case["checks"]:
        key = {name: check.get(name) for name in ("model", "override", "num_ctx")}
        found = refold.window(key["model"], override=key["override"], allocated=key["num_ctx"])
        windows[json.dumps(key, sort_keys=True)] = {"value": found.window, "assumed": found.assumed}
    return [], {"windows": windows}


def _classify_error(case, _):
    error = refold.classify_error(case["error"])
    learned = LearnedWindows()
    if error.kind == "context_overflow" and error.limit:
        learned.learn(case.get("model") or "model", "", error.limit)
    return [], _classified(error) | {"learned_window": learned.get(case.get("model") or "model", "")}


def _classify_response(case, _):
    return [], _classified(classify_response(case["response"], case.get("context_window")))


def _classified(error):
    return {
        "overflow_detected": error.kind == "context_overflow",
        "error_class": error.kind,
        "parsed_limit": error.limit,
        "remedy": error.remedy,
    }


def _session(case, policy):
    return sessions.run(case, policy)


def _loop(case, policy):
    provider, compactions = Provider(case), []
    window = settings(case, policy)
    try:
        done = recovering(
            provider,
            case["messages"],
            summarize=Summarizer(case),
            observers=[lambda event: compactions.append(event) if isinstance(event, CompactionApplied) else None],
            **window,
        )
        out, error = done.messages, None
    except Exception as raised:
        out, error = case["messages"], raised
    assert provider.requests <= 20, "the loop did not end"
    return out, {
        "ends_with_error": error is not None,
        "error": None if error is None else str(error),
        "compaction_count": len(compactions),
    }


def _covered(case, result, stub):
    """Return whether each original message is in the output or was in the input of a summary call that succeeded."""
    present = {id(message) for message in result.messages}
    summarized = {id(message.native) for need in stub.answered for message in need.messages}
    return all(id(message) in present | summarized for message in case["messages"])
