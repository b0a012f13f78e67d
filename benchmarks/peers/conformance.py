"""compaction-conformance-kit, driven through its own command in its own environment, with nothing known of what it plants.

    python benchmarks/peers/conformance.py                        the policies of refold
    python benchmarks/peers/conformance.py --only refold,tessera  these rows
    python benchmarks/peers/conformance.py --seeds 1-8 --rounds 5

The kit plants statements in a dialogue without tools, has it compacted in rounds to a share of its characters, and looks
for them afterwards. Its adapter, conformance_spec.py, hands on the role and the text of each turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import report
from adapters import peers
from environments import (
    HERE,
    HOME,
    OFFLINE,
    install,
    python_of,
    versions,
)

SPEC = HERE / "conformance_spec.py"
RESULTS = HERE / "conformance.json"


def measured(name: str, family: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the kit's entries for a row, one for each budget."""
    install(family)
    worker = [str(python_of(family)), str(HERE / "worker.py"), name]
    told = {"REFOLD_PEER_NAME": name, "REFOLD_PEER_COMMAND": json.dumps(worker)}
    kit = str(python_of("conformance").parent / "compaction-kit")
    asked = ["--budgets", "20%,30%,50%", "--seeds", options.seeds, "--rounds", options.rounds, "--format", "json"]
    done = subprocess.run(
        [kit, "benchmark", "--spec", f"{SPEC}:Row", *asked],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | OFFLINE | told,
    )
    entries: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return entries


def main() -> None:
    """Run the kit over each row and write the results."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument(
        "--only", default="", help="parts of rows' names between commas; the policies of refold if empty"
    )
    asked.add_argument("--seeds", default="1-4")
    asked.add_argument("--rounds", default="5")
    options = asked.parse_args()
    install("conformance")
    HOME.mkdir(parents=True, exist_ok=True)
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"rows": {}}
    known["kit"], known["seeds"], known["rounds"] = versions("conformance"), options.seeds, options.rounds
    for peer in peers():
        wanted = any(part in peer.name for part in options.only.split(",")) if options.only else not peer.family
        if wanted:
            known["rows"][peer.name] = measured(peer.name, peer.family, options)
            RESULTS.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
            print(report.survivals(peer.name, known["rows"][peer.name]), file=sys.stderr, flush=True)
    report.insert({"conformance": report.conformance()})


if __name__ == "__main__":
    main()
