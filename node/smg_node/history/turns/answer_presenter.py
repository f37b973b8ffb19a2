"""Answer presenter: interface by which a run tells its events, whichever API its answer is of."""

from collections.abc import Sequence
from typing import Protocol

from smg_node.core.generation.events import Begin, Event
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.items.item_document import ItemDoc


class AnswerPresenter(Protocol):
    """Presenter of one stored answer."""

    @property
    def outcome(self) -> FinalStatus | None:
        """Final status of the generation, once it is over."""
        ...

    def queue(self) -> list[NumberedEvent]:
        """Return the events of an answer that is queued."""
        ...

    def begin(self) -> list[NumberedEvent]:
        """Return the events of an answer that runs from now on."""
        ...

    def drawn_with(self, begin: Begin) -> None:
        """Learn the sampling values that the generation has."""
        ...

    def tell(self, events: Sequence[Event]) -> list[NumberedEvent]:
        """Return the public events for these of the generation; never the last one."""
        ...

    def close(self, ended: FinalStatus) -> list[NumberedEvent]:
        """Return the last events, the terminal one at the end."""
        ...

    def instead(self, ended: FinalStatus) -> NumberedEvent:
        """Return the terminal event with another end."""
        ...

    def response(self) -> bytes:
        """Return the kept document as it is now."""
        ...

    def output(self) -> tuple[ItemDoc, ...]:
        """Return the finished items."""
        ...
