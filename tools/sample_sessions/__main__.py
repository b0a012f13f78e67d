"""`python -m tools.sample_sessions` writes the sample conversations: the examples, and what `refold demo` reads."""

from __future__ import annotations

from pathlib import Path

from tools.sample_sessions.examples import write_examples, write_samples

ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    for path in write_examples(ROOT / "examples") + write_samples(ROOT / "src" / "refold" / "_samples"):
        print(f"{path.relative_to(ROOT)} ({path.stat().st_size:,} bytes)")
