"""Records what the originals of four policies decide over seeded histories, for the differential tests.

    python tools/record_originals.py --work FOLDER                    # all four
    python tools/record_originals.py --work FOLDER neurolink vibe     # these alone
    python tools/record_originals.py --figures                        # only the figures of the policies' pages

The tests are tests/conformance/test_differential.py. `--figures` needs none of the originals: it compares this
project's decisions with the recorded ones, and counts.

Run by hand. FOLDER is outside the project; what is not there yet is fetched into it:

- neurolink: `@juspay/neurolink` from npm, unpacked and driven by Node (tools/originals/drive_neurolink.mjs);
- vibe: `mistral-vibe` from PyPI in an environment of its own (Python 3.12 or later), with a backend that answers from
  a script (tools/originals/drive_vibe.py);
- claude-code: `v5_compression_agent.py` of learn-claude-code, a file of a public repository, which you put into FOLDER
  yourself (tools/originals/drive_claude_code.py says which revision), with a client that answers from a script;
- wolffish: `compactor.ts` of wolffish-app, likewise (tools/originals/drive_wolffish.mjs), its types stripped by the
  package `typescript` from npm.

Each becomes one file in tests/data/originals: version, licence, the settings in which a newer version was set back to
its documentation page, the seed of the histories, and the decisions: sizes, counts, and positions of messages. Nothing
of the originals' own text or code is in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from tests.conformance import comparisons, differential, histories  # noqa: E402

DATA = ROOT / "tests" / "data" / "originals"
DRIVERS = ROOT / "tools" / "originals"
NEUROLINK = "9.37.0"
VIBE = "1.3.3"
CLAUDE_CODE = "d5c16a7"
WOLFFISH = "56a5158"
TYPESCRIPT = "5"


def main(arguments: Sequence[str]) -> int:
    """Record the chosen originals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ORIGINAL", choices=[*RECORDERS, []], help="all by default")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where the originals are put")
    parser.add_argument("--figures", action="store_true", help="write the figures of the policies' pages anew")
    options = parser.parse_args(arguments)
    if options.figures:
        differential.FIGURES.write_text(differential.figures_text(comparisons.figures()), "utf-8")
        return 0
    if options.work is None:
        parser.error("--work FOLDER says where the originals are, or are to be put")
    for name in options.names or RECORDERS:
        recorded = RECORDERS[name](options.work.resolve())
        path = DATA / f"{name}.json"
        path.write_text(_lines({**recorded, "seed": histories.SEED}), "utf-8")
        print(f"{path.relative_to(ROOT)}: {len(recorded['histories'])} histories, {path.stat().st_size:,} bytes")
    return 0


def neurolink(work: Path) -> dict[str, Any]:
    """Return the decisions of NeuroLink's compaction modules."""
    package = work / f"neurolink-{NEUROLINK}"
    if not package.exists():
        package.mkdir(parents=True)
        archive = subprocess.check_output(["npm", "pack", f"@juspay/neurolink@{NEUROLINK}"], cwd=package, text=True)  # noqa: S607
        subprocess.run(["tar", "xzf", archive.split()[-1], "--strip-components=1"], cwd=package, check=True)  # noqa: S607
    jobs = [
        {
            "name": history.name,
            "digest": history.digest,
            "messages": histories.neurolink(history.entries),
            "named": histories.neurolink(histories.named_reads(history.entries)),
            "more": histories.neurolink(history.more, len(history.entries)),
            "providers": list(histories.PROVIDERS),
            "parts": histories.PARTS,
            "model": "gpt-4.1",
            "window": histories.WINDOW,
            "ratios": histories.RATIOS,
            "shares": histories.SHARES,
            "summary": histories.SUMMARY,
        }
        for history in histories.histories()
    ]
    made = _driven(["node", str(DRIVERS / "drive_neurolink.mjs"), str(package)], jobs)
    return {"original": "@juspay/neurolink", "version": NEUROLINK, "licence": "MIT", **made}


def vibe(work: Path) -> dict[str, Any]:
    """Return the decisions of Vibe's agent."""
    python = work / f"vibe-{VIBE}" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", f"mistral-vibe=={VIBE}", "mcp<2"], check=True)
    jobs = [
        {
            "name": history.name,
            "digest": history.digest,
            "messages": histories.openai(histories.with_system(history.entries)),
            "more": histories.openai(history.more),
        }
        for history in histories.histories()
    ]
    given = {
        "histories": jobs,
        "summary": histories.SUMMARY,
        "walks": histories.walks(),
        "calls": histories.calls(),
    }
    made = _driven([str(python), str(DRIVERS / "drive_vibe.py")], given)
    return {"original": "mistral-vibe", "version": VIBE, "licence": "Apache-2.0", **made}


def claude_code(work: Path) -> dict[str, Any]:
    """Return the decisions of learn-claude-code's context manager."""
    jobs = [
        {"name": history.name, "digest": history.digest, "messages": histories.anthropic(history.entries)}
        for history in histories.histories()
    ]
    source = work / "v5_compression_agent.py"
    given = {
        "histories": jobs,
        "summary": histories.SUMMARY,
        "files": histories.files(),
        "windows": histories.WINDOWS,
        "outputs": histories.OUTPUTS,
    }
    made = _driven([sys.executable, str(DRIVERS / "drive_claude_code.py"), str(source)], given)
    return {"original": "learn-claude-code v5", "version": CLAUDE_CODE, "licence": "MIT", **made}


def wolffish(work: Path) -> dict[str, Any]:
    """Return the decisions of Wolffish's compactor."""
    if not (work / "node_modules" / "typescript").exists():
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", f"typescript@{TYPESCRIPT}"], cwd=work, check=True)  # noqa: S607
    jobs = [
        {"name": history.name, "digest": history.digest, "messages": histories.wolffish(history.entries)}
        for history in histories.histories()
    ]
    given = {
        "histories": jobs,
        "summary": histories.SUMMARY,
        "ratios": histories.WOLFFISH_RATIOS,
        "shares": histories.EXCESSES,
    }
    driver = [
        str(DRIVERS / "drive_wolffish.mjs"),
        str(work / "compactor.ts"),
        str(work / "node_modules" / "typescript"),
    ]
    made = _driven(["node", *driver], given)
    return {"original": "wolffish-app, compactor.ts", "version": WOLFFISH, "licence": "MIT", **made}


RECORDERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "neurolink": neurolink,
    "vibe": vibe,
    "claude-code": claude_code,
    "wolffish": wolffish,
}


def _driven(command: Sequence[str], jobs: object) -> dict[str, Any]:
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-2_000:]}")
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def _lines(recorded: dict[str, Any]) -> str:
    """Write a record as JSON, a history a line, so that a change shows where it is."""
    head = "".join(f' "{name}": {json.dumps(value)},\n' for name, value in recorded.items() if name != "histories")
    lines = ",\n  ".join(json.dumps(one, separators=(",", ":")) for one in recorded["histories"])
    return f'{{\n{head} "histories": [\n  {lines}\n ]\n}}\n'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
