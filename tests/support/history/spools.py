"""A spool on a disk of its own, turns to put there, and a store that goes away when a test says so."""

from collections.abc import Sequence
from pathlib import Path

from smg_node.history.spool.spool import Spool, SpoolLimits
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access, Committed, Status, StoredResponse, Turn

TENANT = "acme"
ACCESS = Access(tenant=TENANT, principal="key-1", request_id="req-1", headers={"x-team": "red"})


def response_id(thread: int, number: int) -> str:
    """Return the id of the so-many-th response of a thread."""
    return f"resp_{number:012x}{thread:012x}{number:024x}"


def turn(thread: int = 1, number: int = 1, *, size: int = 10) -> Turn:
    """Return a turn that continues the one before it."""
    previous = response_id(thread, number - 1) if number > 1 else ""
    document = b'{"text":"' + b"x" * size + b'"}'
    return Turn(
        StoredResponse(
            id=response_id(thread, number),
            status=Status.COMPLETED,
            model="m",
            created_us=1_000_000 * number,
            input=b"[]",
            response=document,
            previous_response_id=previous,
            depth=number - 1,
            completed_us=1_000_000 * number,
        )
    )


class SaltSource:
    """Another salt each time, the same ones in each run."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self) -> bytes:
        """Return 16 bytes."""
        self._next += 1
        return self._next.to_bytes(16, "big")


def spool_at(
    root: Path, life: str = "1", *, turns_max: int = 100, bytes_max: int = 1 << 20
) -> Spool:
    """Return the spool of a process."""
    return Spool(
        root,
        life,
        limits=SpoolLimits(turns_max, bytes_max),
        now_us=lambda: 5_000_000,
        salt=SaltSource(),
    )


class MoodyStore(MemoryStore):
    """A store in memory that is away, or does not like a response, when a test says so."""

    def __init__(self) -> None:
        super().__init__(Bounds(), lambda: 5_000_000)
        self.away = False
        self.disliked: set[str] = set()
        self.came: list[str] = []
        """Responses whose turns were written, in order."""
        self.asked = 0

    async def start(self) -> None:
        """Begin, unless it is away."""
        self._check()

    async def ping(self, *, timeout_s: float) -> None:
        """Answer, unless it is away."""
        self._check()

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """Write it, unless it is away or does not like it."""
        self._check()
        if turn.response.id in self.disliked:
            raise StoreError(StoreErrorKind.REJECTED, "it is not liked")
        done = await super().commit_turn(access, turn)
        if not done.again:
            self.came.append(turn.response.id)
        return done

    async def get_response(self, access: Access, response_id: str) -> StoredResponse | None:
        """Look it up, unless it is away."""
        self._check()
        return await super().get_response(access, response_id)

    def _check(self) -> None:
        self.asked += 1
        if self.away:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "the weather is bad")


def in_order(ids: Sequence[str]) -> bool:
    """Return whether responses of each thread come in the order of their numbers."""
    last: dict[str, str] = {}
    for one in ids:
        thread = one[17:29]
        if one < last.get(thread, ""):
            return False
        last[thread] = one
    return True
