"""Where recorded sessions lie: our own in the repository, and other people's, with fault reports, beside it."""

import json
import os
from pathlib import Path

SHARED = Path(os.environ.get("REFOLD_SHARED", Path(__file__).parent.parent.parent / "shared"))
SESSIONS = Path(__file__).parent / "data" / "sessions"
MANIFEST = json.loads((SESSIONS / "MANIFEST.json").read_bytes())
OWN = [SESSIONS / agent / name for agent, entry in MANIFEST.items() for name in entry["files"]]
