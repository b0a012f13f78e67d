import ast
from importlib.util import find_spec
from pathlib import Path

import pytest


def imported(module):
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin
    nodes = list(ast.walk(ast.parse(Path(spec.origin).read_text())))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes)
    return {node.module for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("refold._gateway.conversations.planner", {"refold._gateway.recall.deferred"}),
        ("refold._gateway.recall.deferred", {"refold._gateway.conversations.planner"}),
        (
            "refold._gateway.conversations.plugin",
            {"refold._gateway.conversations.planner", "refold._gateway.recall.deferred"},
        ),
    ],
)
def test_planning_and_deferred_recall_do_not_import_each_other(module, others):
    assert not imported(module) & others
