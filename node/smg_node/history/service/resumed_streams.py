"""Resumed streams: those that clients go on with after a break, counted by why it broke and how they ended.

Why it broke is told by what the node that serves the rest can see: the checkpoint that a draining node
wrote, or what became of the node that made the answer. It is settled when the stream is over: a node
that died a moment ago passes for alive when its clients come back.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Literal, TypeAlias

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.predecessors import node_of
from smg_node.history.runs.run_registry import FIRST_TOKEN
from smg_node.history.turns.api_ids import is_interaction
from smg_node.history.turns.public_forms import LAST_EVENTS
from smg_storage.records import StoredResponse

Cause: TypeAlias = Literal["cut", "drain", "death"]
"""Why a stream broke: its connection was cut, its node drained or left, or the answer's node died."""
Ending: TypeAlias = Literal["whole", "left", "lost", "refused"]
"""How the rest ended: at its last event; its client left; it could not go on; it was never begun."""
Events: TypeAlias = AsyncGenerator[Sequence[NumberedEvent], None]


class ResumedStreams:
    """Counts of this process. `owner` is its name as the owner of runs; `known` returns the states of
    the other nodes.
    """

    def __init__(self, owner: str, known: Callable[[], Mapping[str, str]]) -> None:
        self.over: Final[dict[tuple[str, Cause, Ending], int]] = {}
        """How many there were, by API, cause and ending."""
        self._owner: Final = owner
        self._known: Final = known

    def of(self, response_id: str, *, drained: bool = False) -> "ResumedStream":
        """Return one, of this answer; `drained` where a draining node sent its client on."""
        api = "interactions" if is_interaction(response_id) else "responses"
        return ResumedStream(self, api, drained=drained)

    def cause(self, maker: StoredResponse) -> Cause:
        """Return the cause that shows in the answer's row."""
        if maker.lease_token > FIRST_TOKEN:
            # Somebody else took it over.
            return "death"
        if maker.status.is_final or maker.owner == self._owner:
            return "cut"
        node = node_of(maker.owner)
        if node == node_of(self._owner):
            # An earlier process of this node began it, and has not ended it.
            return "death"
        state = self._known().get(node, "")
        return "death" if state == "dead" else "drain" if state == "left" else "cut"

    def count(self, api: str, cause: Cause, ending: Ending) -> None:
        """Count one that is over."""
        key = (api, cause, ending)
        self.over[key] = self.over.get(key, 0) + 1

    def readings(self) -> dict[tuple[str, ...], float]:
        """Return the counts by label values, for a scrape."""
        return dict(self.over.items())


class ResumedStream:
    """One stream with which a client goes on. Count it with either `told` or `refused`, once."""

    __slots__ = ("_api", "_cause", "_lost", "_streams")

    def __init__(self, streams: ResumedStreams, api: str, *, drained: bool) -> None:
        self._streams = streams
        self._api = api
        self._cause: Cause = "drain" if drained else "cut"
        self._lost = False

    def seen(self, maker: StoredResponse) -> None:
        """Take a row of its answer that was read; the first cause that shows other than a cut counts."""
        if self._cause == "cut":
            self._cause = self._streams.cause(maker)

    def lost(self) -> None:
        """Note that what its client gets for an end is none."""
        self._lost = True

    def refused(self) -> None:
        """Count it as one that was never begun."""
        self._streams.count(self._api, self._cause, "refused")

    async def told(self, events: Events) -> Events:
        """Yield its events, and count it when they are over."""
        ending: Ending = "left"
        begun = False
        try:
            async with aclosing(events) as batches:
                async for told in batches:
                    begun = True
                    if told[-1].type in LAST_EVENTS:
                        ending = "whole"
                    yield told
            ending = "whole"
        except Exception:
            ending = "lost" if begun else "refused"
            raise
        finally:
            self._streams.count(self._api, self._cause, "lost" if self._lost else ending)
