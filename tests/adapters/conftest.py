"""Leaves out the adapters whose framework is not in this environment: `make adapters` makes one for each."""

import ast
import os
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches prices when it is imported
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # no network


def installed(path):
    """Tell whether everything is there that a file of tests imports."""
    for node in ast.parse(path.read_text("utf-8")).body:
        names = (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
        )
        try:
            # a package loaded by another may have no spec, as Haystack's lazy ones
            if not all(name in sys.modules or find_spec(name) for name in filter(None, names)):
                return False
        except ModuleNotFoundError:  # `google.adk.agents`, where there is another package of `google`
            return False
    return True


collect_ignore = [path.name for path in Path(__file__).parent.glob("test_*.py") if not installed(path)]
