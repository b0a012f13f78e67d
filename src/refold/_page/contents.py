"""What a conversation holds now: where its tokens go, and what the user said that must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.routing import Route

from refold import formats
from refold._condense.pins import Pin, absent_pins, pins
from refold._inspect.token_table import tallied
from refold._page.conversation import history_of
from refold._page.conversations import title_of
from refold._page.templating import page
from refold.core.edits import patched
from refold.core.messages import Message
from refold.core.transcript import Transcript
from refold.transcripts import RecordedConversation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from refold._page.conversations import Conversations
    from refold._page.history import History
    from refold.core.messages import MessageId

__all__ = ["ROUTES"]

ROWS = 25  # names of a table
SENTENCES = 500  # that must hold, shown on a page
AT_ONCE = 500  # originals that are read together
OF_OTHERS = ("assistant", "model", "tool", "function")


class StandingPin(Struct, frozen=True):
    """A sentence that must hold: whether the model is still sent it, and whether its message is sent as it was."""

    pin: Pin
    position: int
    stands: bool
    in_place: bool


async def tokens(request: Request) -> Response:
    """Return where the tokens of the next request go, by kind, tool, file and role."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)

    def work() -> Response:
        settings = history.state.settings
        messages = view_messages(history)
        natives = formats.assemble_with_sources(formats.find(history.head.format), messages)[0]
        recorded = RecordedConversation(
            "store", history.head.format, natives, settings.get("system"), settings.get("tools"), settings.get("model")
        )
        table = tallied(recorded, history.head.id) if natives else None
        return page(request, "tokens.html", title=title_of(history), history=history, table=table, most=ROWS)

    return await conversations.run(work)


async def constraints(request: Request) -> Response:
    """Return the sentences of users that state a constraint, and whether each is still sent."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)

    def work() -> Response:
        every = pins(Transcript(tuple(spoken(history))))
        view = view_messages(history)
        lost = set(absent_pins(every, view))
        unchanged = {message.id for message in view if not message.patches}
        places = {id: place for place, id in enumerate(history.state.ids)}
        rows = [
            StandingPin(pin, places[pin.message], pin.text not in lost, pin.message in unchanged) for pin in every
        ]  # fmt: skip
        return page(request, "constraints.html", title=title_of(history), history=history, rows=rows, most=SENTENCES)

    return await conversations.run(work)


def view_messages(history: History) -> list[Message]:
    """Read the messages that the model is sent now."""
    rows = [row for row in history.view(history.state) if not row.hidden]
    originals = history.messages([row.message.id for row in rows if not row.inserted])
    return [
        row.message if row.inserted else patched(originals[row.message.id], row.message.patches)
        if row.message.patches else originals[row.message.id]
        for row in rows
    ]  # fmt: skip


def spoken(history: History) -> list[Message]:
    """Read the originals that are no answer of a model and no result of a tool, as far as their roles tell."""
    format, messages = formats.find(history.head.format), list[Message]()
    ids = history.state.ids
    for start in range(0, len(ids), AT_ONCE):
        natives: Mapping[MessageId, Any] = history.natives(ids[start : start + AT_ONCE])
        for id in ids[start : start + AT_ONCE]:
            native = natives[id]
            if not (isinstance(native, dict) and native.get("role") in OF_OTHERS):
                message = format.read(native, id)
                if message.role in ("user", "system"):
                    messages.append(message)
    return messages


ROUTES = (Route("/c/{id}/tokens", tokens), Route("/c/{id}/must-hold", constraints))
