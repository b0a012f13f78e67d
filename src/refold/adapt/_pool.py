"""Tracks of many conversations in one process, found again by their histories."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from refold.adapt._track import Track, TrackOptions
from refold.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping, Sequence
    from typing import Unpack

    from refold.core.transcript import Transcript

__all__ = ["TrackPool"]

Item = TypeVar("Item")


class _StoredTrack(Track[Item]):
    """A track whose state is found in a mapping by the history, and was stored there under a key."""

    states: MutableMapping[str, str]
    lock: Lock
    state_key = ""

    def _stored_state(self, transcript: Transcript) -> str:
        with self.lock:
            ids = (message.id for message in reversed(transcript.messages))
            self.state_key = next((id for id in ids if id in self.states), "")
            return self.states[self.state_key] if self.state_key else ""


class TrackPool(Generic[Item]):
    """Tracks of the conversations that one adapter serves; for several threads and tasks.

    A framework's extension point is one object for many conversations, often without a name for them. So a track is
    found by the history that is passed: the one that knows its beginning. It belongs to one call at a time. A history
    that is new here, or whose track is in use, gets a track of its own, which takes the plans over that fit.

    Args:
        size: how many conversations are remembered; the one not used for longest is forgotten, and read again when it
            comes back. Without a stored state its plans are forgotten too.
        stale_plans: as in `Track`; "drop" by default, because frameworks edit their histories.
        states: a mapping of text to text that outlasts the process, for a framework that has no place for the plans:
            each state stands under the id of the newest message that its newest plan was made for, and is found again
            by a history that has that message.

    The other options are those of `Track`.

    Added in 0.1.0.
    """

    def __init__(
        self, *, size: int = 256, stale_plans: Literal["raise", "drop"] = "drop",
        states: MutableMapping[str, str] | None = None, **options: Unpack[TrackOptions],
    ) -> None:  # fmt: skip
        self._size, self._stale_plans, self._options, self._states = size, stale_plans, options, states
        self._has_model = "model" in options
        self._tracks: OrderedDict[int, tuple[Track[Item], str, str | None]] = OrderedDict()  # state and model of each
        self._numbers = count()
        self._lock = Lock()
        self._new("", None)  # refuses a misspelt option at once

    @classmethod
    def of_format(
        cls, format: str, options: TrackOptions, states: MutableMapping[str, str] | None = None
    ) -> TrackPool[Item]:
        """Return the pool of an adapter that converts to one format, with the options of its user.

        Raises:
            UsageError: the options name a format.
        """
        if "format" in options:
            raise UsageError(f"the adapter converts to format={format!r}: leave format= out")
        named: TrackOptions = {**options, "format": format}
        return cls(states=states, **named)

    @contextmanager
    def track(
        self,
        items: Sequence[Item],
        *,
        keys: Sequence[Any] | None = None,
        state: str | None = None,
        model: str | None = None,
    ) -> Iterator[Track[Item]]:
        """Lend the track of a conversation to a `with` block.

        Args:
            items: the history, as for `Track.fold`.
            keys: what each item is known by, as for `Track.fold`.
            state: what `Track.dump` returned last for this conversation, where the framework stores it: then these
                plans are in force, whatever the pool remembers; None where the framework has no place for it.
            model: the id of the model that is called, where the options name none: it counts, binds thinking to what
                stands before it or not, and has a window where the options have neither window nor budget.

        Raises:
            UnreadablePlan: `state` is not the state of a track.
        """
        model = None if self._has_model else model
        track = self._take(list(items if keys is None else keys), state, model)
        try:
            yield track
        finally:
            track.release_items()
            with self._lock:
                self._tracks[next(self._numbers)] = track, track.dump(), model
                while len(self._tracks) > self._size:
                    self._tracks.popitem(last=False)
                self._store(track)  # last, because a mapping of the user's may fail

    def _take(self, keys: list[Any], state: str | None, model: str | None) -> Track[Item]:
        """Return the track that knows most of a history, out of the pool, or a new one."""
        with self._lock:
            best, most, fork = None, 0, ""
            for number, (track, dumped, known_model) in self._tracks.items():
                if known_model != model or (state is not None and dumped != state):
                    continue
                common = track.common(keys)
                if common <= most:
                    continue
                most, fork = common, dumped
                best = number if common * 2 > len(track) else None  # else the history of another conversation
            if best is not None:
                return self._tracks.pop(best)[0]
        return self._new(fork if state is None else state, model)

    def _store(self, track: Track[Item]) -> None:
        if not isinstance(track, _StoredTrack):
            return
        newest = track.plans[-1].base.tip if track.plans else ""
        if newest == track.state_key:
            return
        if newest:
            track.states[newest] = track.dump()
        track.states.pop(track.state_key, None)  # a conversation has one
        track.state_key = newest

    def _new(self, state: str, model: str | None) -> Track[Item]:
        options = self._options if model is None else {**self._options, "model": model}
        if self._states is None:
            return Track.load(state, stale_plans=self._stale_plans, **options)
        track: _StoredTrack[Item] = _StoredTrack.load(state, stale_plans=self._stale_plans, **options)
        track.states, track.lock = self._states, self._lock
        return track
