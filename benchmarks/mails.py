"""The task of 41 e-mails (W19) under every policy, by providers that count 1, 2.7 and 4 characters as a token.

    python -m benchmarks.mails [POLICY …]

Prints the table of docs/replay.md. No model and no network: a rule plays the model and sees nothing but each request.
"""

from __future__ import annotations

import sys

from refold import policies
from refold._cli.demo_mail import WINDOWS, MailTrial, tried
from refold.core.counting import CharCounter

CHARACTERS = (1.0, 2.7, 4.0)  # a token, by the provider
HEAD = (
    "| policy | characters a token | e-mails read | read twice | refused | compactions | left at most | last request |"
)
SEED = "| Wolffish's own run | | 41 of 41 | | 0 | 2 | 170,000 (18 %) | 673,000 (70 %) |"


def main(names: list[str]) -> None:
    """Print a row for each policy and tokenizer."""
    print(HEAD, "| --- |" + " ---: |" * 7, SEED, sep="\n")
    for name in names or policies.names():
        for characters in CHARACTERS:
            print(row(tried(name, *WINDOWS[0], CharCounter(characters)), characters), flush=True)


def row(trial: MailTrial, characters: float) -> str:
    """Return a trial as a row of the table; sizes are the provider's own count."""
    limit = trial.window - WINDOWS[0][1]
    cells = [
        f"`{trial.policy}`", f"{characters:g}", f"{trial.read} of {trial.mails}", f"{trial.reads - trial.read}",
        f"{trial.refusals}", f"{trial.compactions}", sized(trial.left, limit) if trial.compactions else "",
        trial.failed or sized(trial.final, limit),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def sized(tokens: int, limit: int) -> str:
    """Return a size with its share of the input budget."""
    return f"{tokens:,} ({tokens / limit:.0%})".replace("%", " %")


if __name__ == "__main__":
    main(sys.argv[1:])
