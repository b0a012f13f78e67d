"""Messages as stores take them, and plans over them, for tests of stores."""

import json

from refold.core.edits import Hide
from refold.core.messages import MessageId
from refold.core.plan import Base, Plan, Sizes, sealed
from refold.core.transcript import ROOT, chain
from refold.core.view import Cause
from refold.sessions._stores.protocol import StoredMessage


def chained(*texts, parent=ROOT):
    """One received user message a text, chained after a parent."""
    out = []
    for text in texts:
        native = {"role": "user", "content": text}
        parent = chain(parent, json.dumps(native, sort_keys=True).encode())
        out.append(StoredMessage(MessageId(parent), json.dumps(native), text))
    return out


def plan_for(messages, *, hide=1, earlier=()):
    """A plan that hides the first so many of these messages."""
    base = Base(len(messages), messages[-1].id)
    edits = (Hide(tuple(message.id for message in messages[:hide])),)
    return sealed(Plan("manual", "", Cause.MANUAL, base, Sizes(9, 5, 5, 10), edits, earlier=tuple(earlier)))
