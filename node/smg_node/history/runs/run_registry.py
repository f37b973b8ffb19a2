"""Run registry: this process's background runs: started, found, limited, ended at shutdown.

Each is in the store before its client gets the id. Their number is limited, in all and per tenant,
and so bounds their memory.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock, Rng
from smg_node.history.errors import RETRY_AFTER_S, asking_store
from smg_node.history.ports import HistoryOptions, Keeper
from smg_node.history.runs.background_run import Pace, RegisteredRun, RunParts, Terms
from smg_node.history.runs.run_slots import RunSlot, RunSlots
from smg_node.history.runs.store_retry import StoreRetry
from smg_node.history.runs.unsaved_bytes import UnsavedBytes
from smg_node.history.turns.response_run import ResponseRun
from smg_node.history.turns.turn_record import begun_row, with_status
from smg_storage.errors import StoreError
from smg_storage.records import NEVER_US, Lease, Status, StoredResponse, Turn

APPENDING_MAX: Final = 16
"""So many write into their logs at a time; the next write of one that waited takes more at once."""
FIRST_TOKEN: Final = 1
UP_S: Final = 5.0
"""So long who comes first waits for the node to be up."""

_log: Final = logging.getLogger("smg_node.history")


class RegisteredRuns:
    """All runs of this process. `changed` is called when one more is over."""

    def __init__(
        self,
        keeper: Keeper,
        options: HistoryOptions,
        *,
        owner: str,
        clock: Clock,
        rng: Rng,
        pace: Pace | None = None,
    ) -> None:
        """Take the owner's name of this process; a later process of the same node has another
        suffix.
        """
        self.owner: Final = owner
        self.changed: Callable[[], None] = lambda: None
        self.begun: Final = {"background": 0, "resumable": 0}
        """How many there were, by why they outlive who asked."""
        self.ended: Final[dict[str, int]] = {}
        """How many are over, by how they ended."""
        self._keeper: Final = keeper
        self._options: Final = options
        self._clock: Final = clock
        self._pace: Final = pace or Pace()
        self._parts: Final = RunParts(
            keeper=keeper,
            clock=clock,
            insisting=StoreRetry(
                clock,
                rng,
                first_wait_s=self._pace.retry_s,
                most_wait_s=self._pace.retry_most_s,
            ),
            held=UnsavedBytes(),
            appending=asyncio.Semaphore(APPENDING_MAX),
            pace=self._pace,
        )
        self._runs: Final[dict[tuple[str, str], RegisteredRun]] = {}
        self._places: Final = RunSlots(options)
        self._appends = 0
        self._group: asyncio.TaskGroup | None = None
        self._up: Final = asyncio.Event()
        self._shut = False

    # ── For others ───────────────────────────────────────────────────────────

    def find(self, tenant: str, response_id: str) -> RegisteredRun | None:
        """Return the run of that id, while it is in progress and not deleted."""
        run = self._runs.get((tenant, response_id))
        return None if run is None or run.forgotten else run

    @property
    def count(self) -> int:
        """Number of runs, including those about to be started."""
        return self._places.taken

    @property
    def appends(self) -> int:
        """Number of writes into event logs."""
        return self._appends + sum(run.log.appends for run in self._runs.values())

    @property
    def held_bytes(self) -> int:
        """Bytes of events that are not in a log yet."""
        return self._parts.held.bytes

    def lag_s(self) -> float:
        """Return the age of the oldest event that is not in its log yet."""
        return max((run.log.lag_s() for run in self._runs.values()), default=0.0)

    def has_room(self, tenant: str) -> bool:
        """Whether one more run of this tenant may be started."""
        return self._places.has_room(tenant)

    def place(self, tenant: str) -> RunSlot:
        """Return a slot for one more; RATE_LIMITED `background_limit` if there is none, OVERLOADED
        at shutdown.
        """
        if self._shut:
            raise _shutting_down()
        return self._places.take(tenant)

    def cut(self) -> None:
        """End all runs now, because the node shuts down; no more are started."""
        self._shut = True
        for run in list(self._runs.values()):
            run.shut()

    # ── Begun ────────────────────────────────────────────────────────────────

    async def start(
        self, made: ResponseRun, *, background: bool, place: RunSlot | None = None
    ) -> RegisteredRun:
        """Start a run of a response that has not begun; it is in the store when this returns.

        RATE_LIMITED `background_limit` if there is no slot for it; OVERLOADED `store_unavailable`,
        or at shutdown. Without `background` it ends when its client has been away for a while.
        """
        with place or self.place(made.access.tenant) as taken:
            run = await self._start(made, background=background)
            taken.keep()
            group = self._group
            assert group is not None, "what is up has somebody to carry tasks"
            # In the context of who asked for it: log lines and traces name the request.
            group.create_task(self._carry(run, taken), name=f"response {run.id}")
            return run

    async def _start(self, made: ResponseRun, *, background: bool) -> RegisteredRun:
        await self._until_up()
        events = made.open() if background else []
        record, lease = self._row(made, Status.QUEUED if background else Status.IN_PROGRESS)
        made.token = lease.token
        asked_s = self._clock.monotonic_s()
        # With a key of its client's, so that nobody finds one without the other.
        key = made.entry.key_at_once() if background else None
        store = self._keeper.store
        with asking_store():
            if key is None:
                await store.store_response(made.access, record)
            else:
                await store.commit_turn(made.access, Turn(response=record, idempotency=key))
        if self._shut:
            await self._take_back(made)
            raise _shutting_down()
        if key is not None:
            made.entry.bound()
        options = self._options
        deadline_s = asked_s + options.background_deadline_s
        run = RegisteredRun(
            made,
            lease,
            self._parts,
            Terms(
                deadline_s=deadline_s,
                log_expires_us=options.log_until_us(record.created_us),
                grace_s=None if background else options.grace_s(made.hydrated.ask.api),
            ),
        )
        made.why_cut = lambda: None
        run.log.say(events)
        self._runs[made.access.tenant, made.id] = run
        self.begun["background" if background else "resumable"] += 1
        return run

    async def _until_up(self) -> None:
        try:
            async with asyncio.timeout(UP_S):
                await self._up.wait()
        except TimeoutError:
            raise SmgError(
                ErrorKind.OVERLOADED,
                "the store of responses and conversations is still being opened",
                code="store_unavailable",
                retry_after_s=RETRY_AFTER_S,
            ) from None

    async def _take_back(self, made: ResponseRun) -> None:
        """Delete a row whose id no client has."""
        try:
            await self._keeper.store.delete_response(made.access, made.id)
        except StoreError as error:
            # Then it is an orphan, and ended as one.
            _log.warning(
                "a response that never began is still there: %s: %s", made.id, error.message
            )

    def _row(self, made: ResponseRun, status: Status) -> tuple[StoredResponse, Lease]:
        options = self._options
        now_us = self._clock.now_ms() * 1_000
        lease = Lease(
            tenant=made.access.tenant,
            response_id=made.id,
            owner=self.owner,
            token=FIRST_TOKEN,
            until_us=now_us + round(self._pace.lease_s * 1_000_000),
        )
        # While it is made it is not over, and then it is kept as any other.
        expires_us = now_us + round(options.background_deadline_s * 1_000_000) + made.kept_us
        return begun_row(
            made.hydrated,
            response_id=made.id,
            status=status,
            response=with_status(made.body(), status),
            created_us=made.created_us,
            expires_us=expires_us if made.kept_us else NEVER_US,
            lease=lease,
        ), lease

    # ── Carried ──────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Carry the runs until cancelled; then end those that are left, as far as there is time."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._up.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cut()
                await self._all_over()

    async def _all_over(self) -> None:
        try:
            async with asyncio.timeout(self._pace.shut_s):
                for run in list(self._runs.values()):
                    await run.ended()
        except TimeoutError:
            _log.warning("%d responses were not ended in order", len(self._runs))

    async def _carry(self, run: RegisteredRun, place: RunSlot) -> None:
        began_s = self._clock.monotonic_s()
        try:
            await run.run()
        except Exception:
            # A door: a mistake in one must not end the others. Its lease ends by itself, and then another node tells.
            _log.exception("a response broke because of a mistake of ours: %s", run.id)
        finally:
            del self._runs[run.access.tenant, run.id]
            place.free()
            self._appends += run.log.appends
            self.ended[run.outcome] = self.ended.get(run.outcome, 0) + 1
            self._say(run, self._clock.monotonic_s() - began_s)
            self.changed()

    def _say(self, run: RegisteredRun, took_s: float) -> None:
        fields = {
            "event": "response_ended",
            "response": run.id,
            "request_id": run.access.request_id,
            "tenant": run.access.tenant,
            "status": run.outcome,
            "duration_s": round(took_s, 3),
        }
        _log.info("a response that outlived its request is over", extra={"fields": fields})


def _shutting_down() -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node is shutting down; another one will answer",
        code="draining",
        retry_after_s=1.0,
    )
