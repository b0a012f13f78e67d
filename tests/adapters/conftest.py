"""Leaves out the adapters whose framework is not in this environment: `make adapters` makes one for each."""

import ast
import os
from importlib.util import find_spec
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches prices when it is imported
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # no network


def packages(path):
    """The packages that a file of tests imports."""
    for node in ast.parse(path.read_text("utf-8")).body:
        names = (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
        )
        yield from (name.partition(".")[0] for name in names if name)


collect_ignore = [
    path.name for path in Path(__file__).parent.glob("test_*.py") if not all(map(find_spec, packages(path)))
]
