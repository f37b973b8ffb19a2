"""Event log reader: reads a response's log in order, in bounded pages, and never past a gap.

Numbers in a log are consecutive. A log that begins too late is not served: of a finished response,
the beginning may have been deleted already; anywhere else a gap is damage.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.errors import asking_store, corrupt
from smg_node.history.runs.event_codec import unpacked
from smg_storage.records import Access, EventBlob
from smg_storage.store import HistoryStore

BLOBS_MAX: Final = 64
PAGE_BYTES: Final = 1 << 20
"""So much of a log, packed, is asked for at a time; one blob is, however large it is."""


class LogReader:
    """Reads the events after the event `after`; -1 is from the beginning.

    `last` is the number of the last event that was read, `after` before there was any.
    """

    def __init__(
        self, store: HistoryStore, access: Access, response_id: str, *, after: int = -1
    ) -> None:
        self.last = after
        self.found = False
        """Whether the log has the event `after`, or any if that is -1; what follows may still be written."""
        self.headless = False
        """Whether there is a log, and its beginning is not in it, where it would have been needed."""
        self._store: Final = store
        self._access: Final = access
        self._id: Final = response_id
        self._page: Final[deque[EventBlob]] = deque()
        self._begun = False
        self._was_large = False

    @property
    def may_have_more(self) -> bool:
        """Whether to ask for more at once: pages at the end of a log are small."""
        return bool(self._page) or self._was_large

    async def more(self) -> Sequence[NumberedEvent]:
        """Return the next events; none if there are no more now, or if the log turned out to be
        `headless`.

        SmgError: the store is away, or the log is damaged.
        """
        while not self.headless:
            if not self._page:
                await self._turn()
            if not self._page or self.headless:
                break
            # A page may be in memory, and a blob takes a millisecond or two: others have their turn in between.
            await asyncio.sleep(0)
            told = self._unpacked(self._page.popleft())
            if told:
                return told
        return ()

    async def exists(self) -> bool:
        """Return whether there is any log at all."""
        return bool(await self._read(after=-1, blobs_max=1))

    async def is_whole(self) -> bool:
        """Return whether the last event that was read is still there: then nothing was deleted
        meanwhile.
        """
        page = await self._read(after=self.last - 1, blobs_max=1)
        return bool(page) and page[0].first <= self.last

    async def _turn(self) -> None:
        # Until it is found, the event before the first one that is wanted is asked for as well: it shows where we are.
        after = self.last if self.found else max(self.last - 1, -1)
        page = await self._read(after=after, blobs_max=BLOBS_MAX)
        if not page:
            return
        if not self.found:
            self.headless = page[0].first > max(self.last, 0)
            self.found = not self.headless
        self._page.extend(page)
        size = sum(len(blob.payload) for blob in page)
        self._was_large = 2 * len(page) >= BLOBS_MAX or 2 * size >= PAGE_BYTES

    async def _read(self, *, after: int, blobs_max: int) -> Sequence[EventBlob]:
        with asking_store():
            return await self._store.read_events(
                self._access, self._id, after=after, limit=blobs_max, bytes_max=PAGE_BYTES
            )

    def _unpacked(self, blob: EventBlob) -> Sequence[NumberedEvent]:
        # Only the first blob may begin earlier than what is wanted of it.
        if blob.first > self.last + 1 or (self._begun and blob.first <= self.last):
            raise corrupt(f"log of response {self._id} after event {self.last}")
        self._begun = True
        try:
            told = unpacked(blob)
        except ValueError as error:
            raise corrupt(f"log of response {self._id} at event {blob.first}") from error
        fresh = told[self.last + 1 - blob.first :]
        if fresh:
            self.last = fresh[-1].sequence
        return fresh
