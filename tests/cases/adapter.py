"""Runs one case through the public verbs and says what was seen beside the output."""

import copy
import json

import refold
from refold.core.needs import Refused
from refold.core.policy import Policy, Step
from refold.stages.clear import Clear
from refold.stages.deduplicate import DeduplicateReads

OPS = {"compact", "truncate", "prune", "dedupe", "repair", "auto", "estimate", "model_window", "classify_error"}
CALLS = ("summarizer_", "removed_messages_covered", "summary_rejected")


class Stub:
    """The case's summarizer, and what it was sent."""

    def __init__(self, spec):
        spec = spec or {"text": "Work in progress."}
        self.outcomes = spec.get("outcomes") or [{"text": text} for text in spec.get("texts", [spec.get("text")])]
        self.finish = spec.get("finish")
        self.calls = []
        self.given = []

    def __call__(self, need):
        self.calls.append(
            {
                "messages": [{"role": "user", "content": need.text}],
                "system": need.instructions,
                "tools": None,
                "max_tokens": need.max_tokens,
                "format": "openai-chat",
                "need": need,
            }
        )
        outcome = self.outcomes[min(len(self.calls), len(self.outcomes)) - 1]
        if "raise" in outcome:
            raise RuntimeError(outcome["raise"]["message"])
        if self.finish == "length":
            return Refused("the answer was cut off at the output limit", "rejected")
        self.given.append(need)
        return outcome["text"]


def run(case):
    """Return the output and the facts seen."""
    before = copy.deepcopy(case)
    out, seen = globals()[f"_{case['op']}"](case)
    assert case == before, "the input was changed"
    return out, seen


def _compact(case, summarize=True):
    stub = Stub(case.get("summarizer"))
    talks = any(check["type"].startswith(CALLS) for check in case["checks"])
    window, reserve = case["context_window"], case.get("max_output_tokens", 0)
    result = refold.compact(
        case["messages"],
        format=case["format"],
        policy="opal" if talks and summarize else "refold",
        budget=window - reserve,
        system=case.get("system"),
        tools=case.get("tools"),
        summarize=stub if summarize else None,
        force=True,
        alternate=bool(case.get("options", {}).get("strict_alternation")),
    )
    assert result.sizes.after <= window - reserve
    assert refold.rewind(result) == case["messages"]
    return result.messages, {
        "summarizer_calls": stub.calls,
        "system": result.system,
        "removed_messages_covered": _covered(case, result, stub),
        "summarizer_transcript_fenced": bool(stub.calls)
        and all("<" in call["messages"][0]["content"] for call in stub.calls),
        "summarizer_fence_not_broken": bool(stub.calls)
        and all(_fence_holds(call["messages"][0]["content"]) for call in stub.calls),
        "exception": None,
        "count": lambda messages: refold.count(messages, format=case["format"]),
    }


def _truncate(case):
    return _compact(case, summarize=False)


def _stage(case, stage):
    policy = Policy("one stage", (Step(stage),))
    plan = refold.plan(case["messages"], format=case["format"], policy=policy, window=1_000_000, force=True)
    return refold.apply(plan, case["messages"], format=case["format"]).messages, {}


def _prune(case):
    return _stage(case, Clear("[Tool result cleared]", keep=1, saving=0))


def _dedupe(case):
    return _stage(case, DeduplicateReads("[File {path} - refer to latest read below]", saving=0.0))


def _repair(case):
    result = refold.repair(case["messages"], format=case["format"])
    stored = refold.load_plan(refold.dump_plan(result.plan))
    again = refold.apply(stored, case["messages"], format=case["format"])
    return result.messages, {
        "repairs": len(result.plan.edits),
        "exception": None,
        "store_round_trip": again.messages == result.messages,
    }


def _auto(case):
    options, usage = case.get("options", {}), case.get("usage")
    share = options.get("threshold", 0.8)
    if usage is not None and "usage_covers_messages" in options:
        usage = refold.Usage(
            usage["prompt_tokens"], usage["completion_tokens"], covers=options["usage_covers_messages"]
        )
    window = refold.window(
        case.get("model") or "unknown", override=case["context_window"], allocated=options.get("num_ctx")
    )
    reserve = min(options.get("max_output_tokens_model", 0), window.window // 4)
    check = refold.check(
        case["messages"],
        format=case["format"],
        policy=_trigger(share),
        budget=refold.Budget(window.window, reserve),
        system=case.get("system"),
        tools=case.get("tools"),
        usage=usage,
    )
    out = case["messages"]
    return out, {"should_compact": check.due, "used_tokens": check.tokens, "input_budget": check.limit}


def _trigger(share):
    from msgspec.structs import replace

    from refold import policies

    return replace(policies.find("refold"), trigger=refold.Share(share, inclusive=True))


def _estimate(case):
    return case["messages"], {
        "estimate": refold.count(case["messages"], format=case["format"], system=case.get("system"))
    }


def _model_window(case):
    windows = {}
    for check in case["checks"]:
        key = {name: check.get(name) for name in ("model", "override", "num_ctx")}
        found = refold.window(key["model"], override=key["override"])
        windows[json.dumps(key, sort_keys=True)] = {"value": found.window, "assumed": found.assumed}
    return [], {"windows": windows}


def _classify_error(case):
    error = refold.classify_error(case["error"])
    return [], {
        "overflow_detected": error.kind == "context_overflow",
        "error_class": error.kind,
        "parsed_limit": error.limit,
        "remedy": error.remedy,
    }


def _covered(case, result, stub):
    """Each original message is in the output, or was in the input of a summary call that succeeded."""
    kept = {id(message) for message in result.messages}
    told = {id(message.native) for need in stub.given for message in need.messages}
    return all(id(message) in kept | told for message in case["messages"])


def _fence_holds(text):
    opening = text[text.index("<") + 1 : text.index(">")]
    return text.count(f"</{opening}>") == 1 and text.rstrip().endswith(f"</{opening}>")
