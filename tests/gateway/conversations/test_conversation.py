import ast
from pathlib import Path

import refold._gateway
from refold._gateway.conversations.conversation import Conversation

ROOT = Path(refold._gateway.__file__).parent
HOME = ROOT / "conversations" / "conversation.py"
OTHERS = {"self", "ready", "untouched", "changed"}  # an object's own attributes, and the requests of the proxy


def attributes():
    """Return the attributes of a conversation: those that its constructor sets."""
    (cls,) = [node for node in ast.parse(HOME.read_text()).body if getattr(node, "name", "") == Conversation.__name__]
    (init,) = [node for node in cls.body if getattr(node, "name", "") == "__init__"]
    return {node.attr for node in ast.walk(init) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


def test_only_a_conversation_assigns_to_its_attributes():
    names = attributes()
    assert {"plans", "view", "cooldown_tokens", "pending_recall", "session_id"} <= names
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in sorted(ROOT.rglob("*.py"))
        if path != HOME
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and node.attr in names
        if not (isinstance(node.value, ast.Name) and node.value.id in OTHERS)
    ]
    assert found == []
