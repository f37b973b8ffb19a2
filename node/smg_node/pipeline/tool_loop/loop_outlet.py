"""Loop outlet: tells the events of all passes and runs to one receiver, and nothing any more once that has failed.

What is said before the first pass has begun is kept until it has, for a stream begins with Begin.
"""

from collections.abc import Sequence

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.pipeline.generation.event_sink import Ready, Receive


class LoopOutlet:
    """Outlet of one answer. `full`: whoever hears is to be waited for before more is asked for."""

    def __init__(self, receive: Receive, ready: Ready | None) -> None:
        self._receive = receive
        self._ready = ready
        self._kept: list[Event] = []
        self.begun = False
        self.full = False
        self.error: BaseException | None = None
        """Why nothing is said any more."""

    def begin(self, opening: Sequence[Event]) -> list[Event]:
        """Take note that the stream begins, and return all that comes first: the `opening`, and what was kept."""
        assert not self.begun, "a stream begins once"
        self.begun = True
        kept, self._kept = self._kept, []
        return [*opening, *kept]

    @property
    def has_kept(self) -> bool:
        """Whether something waits for the beginning."""
        return bool(self._kept)

    def say(self, events: Sequence[Event]) -> bool:
        """Say events; true if whoever hears is to be waited for. An error of the receiver is raised, also later on."""
        if self.error is not None:
            raise self.error
        if not events:
            return self.full
        if not self.begun:
            self._kept += events
            return False
        return self._told(events)

    def fail(self, events: Sequence[Event]) -> None:
        """Say the last events of a stream that may not have begun."""
        if self.error is not None:
            raise self.error
        self.begun = True
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
        try:
            if self._receive(events):
                self.full = True
        except BaseException as error:
            self.error = error
            raise
        return self.full
