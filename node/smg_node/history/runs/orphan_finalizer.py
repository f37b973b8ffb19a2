"""Orphan finalizer: ends one run whose owner is gone: closes its log, then makes its row final.

Followers on any node read the closing events as if the owner had written them, and then the
terminal event, which is made from the row.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.orphan_ending import OrphanEnding
from smg_node.dialects.responses.items.item_document import ItemDoc, items_of
from smg_node.history.errors import corrupt
from smg_node.history.ports import HistoryOptions
from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.event_log_reader import LogReader
from smg_node.history.turns.public_forms import Replay, ended_document, replay_of
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    NEVER_US,
    Access,
    Lease,
    Location,
    Patch,
    Side,
    Status,
    StoredResponse,
    Turn,
)
from smg_storage.store import HistoryStore

TRIES: Final = 3
"""How often a log is read again because it had grown meanwhile; nobody may write into it any more."""


def decide(row: StoredResponse) -> FinalStatus:
    """Return the final status of a run whose owner is gone: the place to change if runs were ever
    to be resumed.
    """
    if row.cancel_requested:
        return FinalStatus.cancelled()
    return FinalStatus.failed(
        SmgError(ErrorKind.UPSTREAM_FAILED, "the node that made it died before it was complete")
    )


class OrphanFinalizer:
    """Ends runs in `store`."""

    def __init__(
        self,
        store: HistoryStore,
        options: HistoryOptions,
        *,
        now_us: Callable[[], int],
    ) -> None:
        self._store: Final = store
        self._options: Final = options
        self._now_us: Final = now_us

    async def bury(self, access: Access, held: Lease) -> str:
        """End a run under our lease, and return its status; "" if it is over or gone. StoreError,
        SmgError as they come.
        """
        row = await self._store.get_response(access, held.response_id)
        if row is None or row.status.is_final:
            return ""
        now_us = self._now_us()
        ended = decide(row).at(now_us // 1_000_000)
        life = await self._closed(access, held, row, ended)
        kept_s = self._options.responses_kept_s
        final = replace(
            row,
            status=Status(ended.status),
            response=_object(row, life, ended),
            completed_us=now_us,
            expires_us=now_us + kept_s * 1_000_000 if kept_s else NEVER_US,
        )
        await self._commit(access, final, await self._turn(access, final, held, life.output))
        return ended.status

    async def _closed(
        self, access: Access, held: Lease, row: StoredResponse, ended: FinalStatus
    ) -> OrphanEnding:
        """Return everything that is known of a run, after its closing events are in the log."""
        for _ in range(TRIES):
            fold = replay_of(row, self._options.reasoning_events)
            try:
                await self._read(access, row.id, fold)
                life = fold.close(row.response, ended)
            except (ValueError, SmgError) as error:
                if isinstance(error, SmgError) and error.kind is not ErrorKind.INTERNAL:
                    raise
                # Its log is damaged, and has been reported. The run ends nevertheless, with nothing to show.
                return OrphanEnding((), (), 0)
            if not life.events:
                return life
            blob = packed(life.events)
            await self._store.append_events(
                access,
                row.id,
                [blob],
                expires_us=self._log_until_us(row),
                token=held.token,
            )
            there = await self._store.read_events(access, row.id, after=blob.first - 1, limit=2)
            if list(there) == [blob]:
                return life
        raise StoreError(StoreErrorKind.CONFLICT, f"somebody else writes the log of {row.id}")

    def _log_until_us(self, row: StoredResponse) -> int:
        """Return when its log expires: as its existing part says, unless that may be gone already."""
        kept_us = round(self._options.event_log_kept_s * 1_000_000)
        return max(self._options.log_until_us(row.created_us), self._now_us() + kept_us)

    async def _read(self, access: Access, response_id: str, fold: Replay) -> None:
        log = LogReader(self._store, access, response_id)
        while told := await log.more():
            fold.feed(told)

    async def _turn(
        self, access: Access, final: StoredResponse, held: Lease, output: tuple[ItemDoc, ...]
    ) -> Turn:
        """Return the turn to write: items that are stored elsewhere already stay where they are."""
        try:
            asked = [item.id for item in items_of(final.input)]
        except ValueError:
            corrupt(f"input of response {final.id}")
            asked = []
        known = await self._store.find_items(access, asked) if asked else {}
        places = [(name, Side.INPUT, place) for place, name in enumerate(asked)]
        places += [(item.id, Side.OUTPUT, place) for place, item in enumerate(output)]
        return Turn(
            response=final,
            locations=tuple(
                Location(name, final.id, side, place)
                for name, side, place in places
                if name and name not in known
            ),
            token=held.token,
        )

    async def _commit(self, access: Access, final: StoredResponse, turn: Turn) -> None:
        try:
            await self._store.commit_turn(access, turn)
        except StoreError as error:
            if error.kind is not StoreErrorKind.BAD_REFERENCE:
                raise
            # Its conversation is not there any more: nothing is added to one, and the run still has to end.
            patch = Patch(
                status=final.status,
                response=final.response,
                completed_us=final.completed_us,
                expires_us=final.expires_us,
            )
            await self._store.patch_response(
                access,
                final.id,
                patch,
                from_statuses=(Status.QUEUED, Status.IN_PROGRESS),
                token=turn.token,
            )


def _object(row: StoredResponse, life: OrphanEnding, ended: FinalStatus) -> bytes:
    try:
        return ended_document(row, life.output, ended)
    except ValueError:
        # It is shown as damaged to whoever asks for it, but it is no run any more.
        corrupt(f"object of response {row.id}")
        return row.response
