"""Public forms of stored answers: each API's own events, ends and objects, by the id of the answer.

An id tells which API made it. What only the Interactions API needs is imported with its first answer.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from smg_node.core.cooperative_steps import Steps
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.orphan_ending import LogReplay, OrphanEnding, ended_object
from smg_node.dialects.responses.events.partial_response import PartialResponse
from smg_node.dialects.responses.events.presenter import ReasoningEvents
from smg_node.dialects.responses.events.stored_replay import TERMINAL_EVENTS, replayed_in_steps
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.history.turns.api_ids import is_interaction
from smg_storage.records import StoredResponse

LAST_EVENTS: Final = TERMINAL_EVENTS | {"interaction.completed"}
"""The types of the events that are the last of their stream."""


class Partial(Protocol):
    """Object of an answer that another node makes."""

    def hear(self, told: Sequence[NumberedEvent]) -> None:
        """Apply the next events, in order; ValueError for one that cannot be applied."""
        ...

    def body(self) -> bytes:
        """Return the document as it is now."""
        ...


class Replay(Protocol):
    """Reading of a log, up to its end."""

    def feed(self, events: Sequence[NumberedEvent]) -> None:
        """Replay the next events; ValueError for one that cannot come there."""
        ...

    def close(self, response: bytes, ended: FinalStatus) -> OrphanEnding:
        """Return the closing events of one that ended so."""
        ...


def partial_of(record: StoredResponse) -> Partial:
    """Return the reader of an object in progress; ValueError if the row has no document."""
    if not is_interaction(record.id):
        return PartialResponse(record.response)
    from smg_node.dialects.interactions.events.log_replay import PartialInteraction

    return PartialInteraction(record.response)


def rebuilt_in_steps(
    record: StoredResponse, reasoning_events: ReasoningEvents
) -> Steps[list[NumberedEvent]]:
    """Return the events of a stored answer, rebuilt; ValueError if the row has no document."""
    if not is_interaction(record.id):
        return replayed_in_steps(record.response, reasoning_events=reasoning_events)
    from smg_node.dialects.interactions.events.stored_replay import (
        replayed_in_steps as interaction_replayed,
    )

    return interaction_replayed(record.response)


def replay_of(row: StoredResponse, reasoning_events: ReasoningEvents) -> Replay:
    """Return the reader of this answer's log."""
    if not is_interaction(row.id):
        return LogReplay(reasoning_events=reasoning_events)
    from smg_node.dialects.interactions.events.log_replay import InteractionReplay

    return InteractionReplay()


def ended_document(row: StoredResponse, output: Sequence[ItemDoc], ended: FinalStatus) -> bytes:
    """Return the document with its output and its end; ValueError if the row has none."""
    if not is_interaction(row.id):
        return ended_object(row.response, output, ended)
    from smg_node.dialects.interactions.events.interaction_object import (
        ended_object as interaction_ended,
    )

    return interaction_ended(row.response, output, ended)
