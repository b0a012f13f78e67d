"""Normalizes model ids: removes provider paths, regions, versions and dates, and writes dots as dashes."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["USUAL_PROVIDERS", "Name", "candidates", "provider_key", "split"]

# Providers as first segment of a path or as an argument, in the words of several routers -> one key.
PROVIDERS = {
    "amazon-bedrock": "bedrock",
    "aws": "bedrock",
    "azure-ai": "azure",
    "bedrock-converse": "bedrock",
    "bedrock-mantle": "bedrock",
    "dashscope": "qwen",
    "fireworks-ai": "fireworks",
    "gemini": "google",
    "github": "github-copilot",
    "google-ai": "google",
    "google-ai-studio": "google",
    "google-vertex": "vertex",
    "grok": "xai",
    "huggingface": "huggingface",
    "moonshotai": "moonshot",
    "together-ai": "together",
    "vertex-ai": "vertex",
    "vertex-ai-beta": "vertex",
    "x-ai": "xai",
    "z-ai": "zai",
    "zhipuai": "zai",
}
ROUTERS = {
    *("anthropic", "azure", "baseten", "bedrock", "cerebras", "cohere", "databricks", "deepinfra", "deepseek"),
    *("fireworks", "github-copilot", "google", "groq", "huggingface", "hyperbolic", "lm-studio", "minimax", "mistral"),
    *("moonshot", "nebius", "novita", "ollama", "openai", "openrouter", "perplexity", "qwen", "sambanova", "together"),
    *("vercel-ai-gateway", "vertex", "vllm", "watsonx", "xai", "zai"),
}
# Who serves the messages of a format, where neither model nor provider is named. OpenAI's formats tell nobody: most
# providers and local servers speak them.
USUAL_PROVIDERS = {"anthropic": "anthropic", "bedrock": "bedrock", "gemini": "google"}
# What Bedrock puts before a model's name.
VENDORS = (
    "ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen"
    "|stability|twelvelabs|writer|zai"
)

REGION = re.compile(r"^(?:us|eu|apac|us-gov|global|jp|au|ca|sa)\.(?=[a-z])")
VENDOR = re.compile(rf"^(?:{VENDORS})\.")
VERSION = re.compile(r"-v\d{1,3}:\d{1,3}(?::\d{1,5}k)?$")
DATE = re.compile(r"-(?:20\d\d-?[01]\d-?[0-3]\d|20\d{6}|[01]\d-20\d\d|[0-3]\d-[01]\d|[01]\d[0-3]\d|2[0-9][01]\d)$")
LABEL = re.compile(r"-(?:latest|preview|exp|experimental|beta|thinking|free|customtools|maas|instruct|it|fp8|tee)$")
WORDS = re.compile(r"[._@\s]+|-{2,}")


class Name(NamedTuple):
    """A model id in two halves: who serves it, empty when the id does not say, and what it is."""

    provider: str
    model: str


def provider_key(provider: str | None) -> str:
    """Return the one spelling of a provider that the tables use; "" for none."""
    key = (provider or "").strip().lower().replace("_", "-")
    head = key.split("/", 1)[0]
    if head.startswith("vertex-ai"):
        return "vertex"
    return PROVIDERS.get(head, head)


def split(model: str) -> Name:
    """Return provider and bare name of an id such as `openrouter/anthropic/claude-sonnet-4.5:free`."""
    text = model.strip().lower()[:400]
    if text.startswith("ft:"):  # ft:BASE:organization:name:id
        text = text.split(":", 2)[1]
    text = re.sub(r"\[1m\]$", "", text).split(".ft-", 1)[0]
    arn = text.startswith("arn:")
    head, _, tail = text.rpartition("/")
    provider = "bedrock" if arn else _router(head)
    bare = REGION.sub("", tail, count=1)
    if VENDOR.match(bare):
        bare, provider = VENDOR.sub("", bare, count=1), provider or "bedrock"
    bare = VERSION.sub("", bare)
    return Name(provider, WORDS.sub("-", bare.replace(":", "-")).strip("-"))


def candidates(bare: str) -> tuple[str, ...]:
    """Return the names to look up, most exact first: as it is, then without date and label."""
    spellings = [bare]
    for _ in range(4):
        last = spellings[-1]
        shorter = DATE.sub("", last)
        if shorter == last:
            shorter = LABEL.sub("", last)
        if shorter in {last, ""}:
            break
        spellings.append(shorter)
    return tuple(spellings)


def _router(path: str) -> str:
    first = provider_key(path.split("/", 1)[0]) if path else ""
    return first if first in ROUTERS else ""
