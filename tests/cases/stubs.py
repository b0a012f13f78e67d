"""What stands for a model in a case: its summarizer, and the provider that always fails."""

import json

from msgspec.structs import replace

import refold
from refold import policies
from refold.core.needs import Refused


class Summarizer:
    """The case's summary model, with the requests that it was sent."""

    def __init__(self, case):
        spec = case.get("summarizer") or {"text": "Work in progress."}
        self.spec = spec
        self.outcomes = spec.get("outcomes") or [{"text": text} for text in spec.get("texts", [spec.get("text")])]
        self.window = case.get("options", {}).get("summarizer_context_window")
        self.calls = []
        self.answered = []
        self.texts = []

    def __call__(self, need):
        self.calls.append(
            {
                "messages": [{"role": "user", "content": need.text}],
                "system": need.instructions,
                "tools": None,
                "max_tokens": need.max_tokens,
                "format": "openai-chat",
            }
        )
        outcome = self.outcomes[min(len(self.calls), len(self.outcomes)) - 1]
        if "raise" in outcome:
            raise RuntimeError(outcome["raise"]["message"])
        if self.window and refold.count(need.text) + refold.count(need.instructions) > self.window:
            raise RuntimeError(f"This model's maximum context length is {self.window} tokens.")
        text = need.instructions if self.spec.get("echo_prompt") else self.spec.get("repeat") or outcome["text"]
        self.texts.append(text)
        if self.spec.get("finish") == "length":
            return Refused("the answer was cut off at the output limit", "rejected")
        self.answered.append(need)
        return text

    def seen(self, out):
        """Return the facts about summary calls; none where the policy made no call."""
        if not self.calls:
            return {}
        sent = [call["messages"][0]["content"] for call in self.calls]
        written = [text for text in strings(out) if any(answer and answer in text for answer in self.texts)]
        return {
            "summarizer_calls": self.calls,
            "summarizer_transcript_fenced": all("<" in text for text in sent),
            "summarizer_fence_not_broken": all(map(_fence_holds, sent)),
            "summary_rejected": not written,
            "summary_labelled": all(text not in self.texts for text in written),
        }


class Provider:
    """A provider that always answers as the case says, with the number of requests that it had."""

    def __init__(self, case):
        self.spec = case.get("provider_stub") or case.get("error") or {}
        self.requests = 0

    def __call__(self, messages):
        self.requests += 1
        if self.requests > 20:
            raise AssertionError("more than 20 requests")
        raise refusal(self.spec)


def refusal(spec):
    """Return the exception that a client would raise for a status and a body."""
    spec = spec.get("error", spec)
    body = spec.get("body", spec.get("message", ""))
    error = RuntimeError(body if isinstance(body, str) else json.dumps(body))
    error.status_code, error.body = spec.get("status", 400), body
    return error


def trigger(policy, case):
    """Return a policy that is due at the case's threshold, as a user would set it."""
    share = case.get("options", {}).get("threshold", 0.8)
    return replace(policies.find(policy), trigger=refold.Share(share, inclusive=True))


def settings(case, policy):
    """Return the settings of a session or a loop: the format, the policy with its threshold, and the budget."""
    return {
        "format": case["format"],
        "policy": trigger(policy, case),
        "model": case.get("model"),
        "budget": refold.Budget(case["context_window"], case.get("max_output_tokens", 0)),
        "system": case.get("system"),
        "tools": case.get("tools"),
    }


def strings(value):
    """Yield every string within a value."""
    match value:
        case str():
            yield value
        case list() | tuple():
            for item in value:
                yield from strings(item)
        case dict():
            yield from strings(list(value.values()))


def _fence_holds(text):
    opening = text[text.index("<") + 1 : text.index(">")]
    return text.count(f"</{opening}>") == 1 and text.rstrip().endswith(f"</{opening}>")
