"""Where material that does not belong to the project lies: other people's transcripts and fault reports."""

import os
from pathlib import Path

SHARED = Path(os.environ.get("REFOLD_SHARED", Path(__file__).parent.parent.parent / "shared"))
