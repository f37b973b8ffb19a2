"""Loop outlet: tells the events of all passes and runs to one receiver, and nothing any more once that has failed."""

from collections.abc import Sequence

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.pipeline.generation.event_sink import Ready, Receive


class LoopOutlet:
    """Outlet of one answer. `full`: whoever hears is to be waited for before more is asked for."""

    def __init__(self, receive: Receive, ready: Ready | None) -> None:
        self._receive = receive
        self._ready = ready
        self.begun = False
        """Whether anything was said."""
        self.full = False
        self.error: BaseException | None = None
        """Why nothing is said any more."""

    def say(self, events: Sequence[Event]) -> bool:
        """Say events; true if whoever hears is to be waited for. An error of the receiver is raised, also later on."""
        if self.error is not None:
            raise self.error
        if not events:
            return self.full
        return self._told(events)

    def fail(self, events: Sequence[Event]) -> None:
        """Say the last events of a stream."""
        if self.error is not None:
            raise self.error
        self._told(events)

    def last_words(self, events: Sequence[Event]) -> None:
        """Say what is left to say while everything is being ended: nobody may hear it."""
        if self.error is None and self.begun and events:
            try:
                self._told(events)
            except SmgError as error:
                self.error = error

    async def ready(self) -> None:
        """Return when more may be said."""
        self.full = False
        if self._ready is not None:
            await self._ready()

    def _told(self, events: Sequence[Event]) -> bool:
        self.begun = True
        try:
            if self._receive(events):
                self.full = True
        except BaseException as error:
            self.error = error
            raise
        return self.full
