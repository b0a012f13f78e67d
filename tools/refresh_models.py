"""Writes src/refold/models/models.json: windows, caps and prices from the data of two MIT-licensed packages.

Run it in an environment of its own; it needs nothing of this project installed:

    python -m venv models && models/bin/pip install --no-deps litellm && models/bin/pip install genai-prices
    models/bin/python tools/refresh_models.py
"""

from __future__ import annotations

import collections
import datetime
import importlib.metadata
import importlib.util
import json
import pathlib
import re
import sys
from decimal import Decimal

ROOT = pathlib.Path(__file__).parent.parent
TABLES = ROOT / "src" / "refold" / "models"
MODES = {"chat", "completion", "responses", None}
SKIP_PROVIDERS = {None, "fal_ai", "replicate", "sagemaker"}
# The maker's own endpoint settles a draw, and its prices are the prices.
HOME = [
    *("openai", "anthropic", "google", "xai", "deepseek", "mistral"),
    *("moonshot", "zai", "qwen", "minimax", "cohere", "meta"),
]
REGIONAL = re.compile(r"us-gov|bedrock/[a-z]+-[a-z]+-\d/|azure/(?:eu|us)/|^(?:us|eu|apac|jp|au|ca)\.")
# Hosts whose own windows are kept apart where they differ from the vote; others only vote.
HOSTS = {*HOME, "azure", "bedrock", "vertex", "openrouter", "groq", "together", "fireworks", "cerebras", "ollama",
         "github-copilot", "sambanova", "databricks", "deepinfra"}  # fmt: skip

spec = importlib.util.spec_from_file_location("names", TABLES / "_names.py")
names = importlib.util.module_from_spec(spec)
sys.modules["names"] = names
spec.loader.exec_module(names)


class Row(collections.namedtuple("Row", "provider name window input output prices")):
    """One host's entry; prices are per million: input, output, cache read, cache write."""


def litellm_rows():
    path = importlib.util.find_spec("litellm").submodule_search_locations[0]
    table = json.loads((pathlib.Path(path) / "model_prices_and_context_window_backup.json").read_text())
    for key, entry in table.items():
        provider = entry.get("litellm_provider")
        if provider in SKIP_PROVIDERS or entry.get("mode") not in MODES or key == "sample_spec":
            continue
        if "*" in key or key.startswith("ft:") or REGIONAL.search(key):  # the base's window, other prices
            continue
        name = names.split(key)
        yield Row(
            names.provider_key(provider),
            name.model,
            0,
            whole(entry.get("max_input_tokens") or entry.get("max_tokens")),
            whole(entry.get("max_output_tokens")),
            tuple(
                million(entry.get(field))
                for field in (
                    "input_cost_per_token",
                    "output_cost_per_token",
                    "cache_read_input_token_cost",
                    "cache_creation_input_token_cost",
                )
            ),
        )


def genai_rows():
    from genai_prices.data import providers

    for provider in providers:
        for model in provider.models:
            prices = model.prices[-1].prices if isinstance(model.prices, list) else model.prices
            yield Row(
                names.provider_key(provider.id),
                names.split(model.id).model,
                whole(model.context_window),
                0,
                0,
                tuple(
                    base(getattr(prices, field))
                    for field in ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
                ),
            )


def base(price):
    """Return the lowest tier of a price as a number."""
    price = getattr(price, "base", price)
    return tidy(price) if isinstance(price, (int, float, Decimal)) else None


def million(per_token):
    return tidy(float(per_token) * 1_000_000) if isinstance(per_token, (int, float)) else None


def tidy(price):
    price = round(float(price), 5)
    return int(price) if price == int(price) else price


def whole(value):
    try:
        return max(0, int(value or 0))
    except (TypeError, ValueError):
        return 0


def vote(rows, field):
    """Return the value most hosts state; a draw goes to the maker's own endpoint, then to the smaller."""
    stated = [(getattr(row, field), row.provider) for row in rows if getattr(row, field)]
    if not stated:
        return 0
    count = collections.Counter(value for value, _ in stated)
    most = max(count.values())
    drawn = {value for value, times in count.items() if times == most}
    for home in HOME:
        for value, provider in stated:
            if provider == home and value in drawn:
                return value
    return min(drawn)


def priced(rows):
    """Return the prices of the maker, or else those most hosts ask."""
    stated = [row for row in rows if row.prices[0] or row.prices[1]]
    for home in HOME:
        for row in stated:
            if row.provider == home:
                return row.prices
    return collections.Counter(row.prices for row in stated).most_common(1)[0][0] if stated else (None,) * 4


def merged(rows):
    """Return window, input cap, output cap and prices of one model from all rows about it."""
    cap, output, total = vote(rows, "input"), vote(rows, "output"), vote(rows, "window")
    if cap and round(total / cap, 6) in {1.024, 1.048576}:
        total = cap  # the same number, once with round thousands and once with 1,024
    if cap < total <= (cap + output) * 1.02:
        window = total  # the input cap and the answer share the window: GPT-5 is 272,000 + 128,000 of 400,000
    elif cap:
        window = cap
    else:
        window = total
    if output > window:
        output = 0
    return [window, cap if 0 < cap < window else 0, output if output < window else 0, *priced(rows)]


def trimmed(row):
    while row and not row[-1]:
        row = row[:-1]
    return row


def main():
    by_name = collections.defaultdict(list)
    for row in [*litellm_rows(), *genai_rows()]:
        if row.name and len(row.name) < 80:
            by_name[row.name].append(row)
    undated = {short: name for name in sorted(by_name) if (short := names.candidates(name)[-1]) not in by_name}
    by_name |= {short: by_name[name] for short, name in undated.items()}  # the newest dated one stands for it
    models = {name: found for name, rows in sorted(by_name.items()) if (found := trimmed(merged(rows))) and found[0]}
    for name in list(models):  # dated ids that say nothing else than the undated one
        row, shorter = models[name], names.candidates(name)[1:]
        if any(row in (found, found[:3]) for other in shorter if (found := models.get(other))):
            del models[name]
    hosts = collections.defaultdict(dict)
    for name, rows in sorted(by_name.items()):
        voted = next((models[other] for other in names.candidates(name) if other in models), None)
        for provider in sorted({row.provider for row in rows} & HOSTS):
            own = trimmed(merged([row for row in rows if row.provider == provider]))
            if not own or not own[0] or not voted:
                continue
            if own[0] == (voted[1:2] or [0])[0]:  # this host states the input cap alone
                own = [voted[0], voted[1], *own[2:]]
            if own[0] != voted[0] or own[3:] != voted[3:]:
                hosts[provider][name] = own if own[3:] != voted[3:] else own[:3]
    versions = {package: importlib.metadata.version(package) for package in ("litellm", "genai-prices")}
    head = {"dated": datetime.date.today().isoformat(), "sources": versions}
    write(head, models, hosts)


def write(head, models, hosts):
    def table(rows):
        lines = (f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}" for name, row in rows.items())
        return "{\n" + ",\n".join(lines) + "\n}"

    hosted = ",\n".join(f"{json.dumps(host)}:{table(rows)}" for host, rows in sorted(hosts.items()) if rows)
    text = f'{json.dumps(head)[:-1]},\n"models":{table(models)},\n"hosts":{{\n{hosted}\n}}\n}}\n'
    json.loads(text)
    (TABLES / "models.json").write_text(text)
    print(f"{len(models)} models, {sum(map(len, hosts.values()))} rows of hosts, {len(text):,} bytes")


if __name__ == "__main__":
    main()
