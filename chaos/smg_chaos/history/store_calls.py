"""Store calls of each operation: how many statements or commands it sends, and its median time, one
after the other.

Statements are counted at the driver, commands by the server itself (`MONITOR`), without those
inside our Lua functions. The begin and the commit of a PostgreSQL transaction are two more round
trips, and are not counted as statements.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from smg_chaos.history.sample_turns import TurnMaker
from smg_storage.open import open_store
from smg_storage.options import SchemaNames, StoreOptions
from smg_storage.records import Access, Conversation, EventBlob, PageAsk, StoredResponse
from smg_storage.store import HistoryStore

_ACCESS: Final = Access(timeout_s=30.0)
_REPEATS: Final = 60
_CHAIN: Final = 50
_BYTES_MAX: Final = 16 << 20
_HOUR_US: Final = 3_600_000_000
_PREFIX: Final = "smgmeasured"
_END: Final = "that is all"

Operation = Callable[[], Awaitable[object]]


class Scene:
    """A chain and a conversation of some length in a store, and the operations measured on them."""

    def __init__(self, store: HistoryStore, now_us: Callable[[], int]) -> None:
        self._store = store
        self._now_us = now_us
        self._maker = TurnMaker(2)
        self._thread = self._maker.thread()
        self._room = Conversation(
            self._maker.id("conv", self._thread, now_us()), now_us(), now_us(), b"{}"
        )
        self._chain: list[StoredResponse] = []
        self._doomed: list[str] = []
        self._blob = 0

    async def begin(self) -> None:
        """Write the chain and the conversation."""
        await self._store.create_conversation(_ACCESS, self._room)
        for _ in range(_CHAIN):
            previous = self._chain[-1] if self._chain else None
            turn = self._maker.turn(self._now_us(), thread=self._thread, previous=previous)
            await self._store.commit_turn(_ACCESS, turn)
            self._chain.append(turn.response)
            await self._in_room()
        for _ in range(_REPEATS + 1):
            turn = self._maker.turn(self._now_us())
            await self._store.commit_turn(_ACCESS, turn)
            self._doomed.append(turn.response.id)

    def operations(self) -> dict[str, Operation]:
        """Return the measured operations, by name."""
        store, last, room = self._store, self._chain[-1].id, self._room.id
        return {
            "a turn": self._alone,
            "a turn of a conversation": self._in_room,
            "a response": lambda: store.get_response(_ACCESS, last),
            f"a chain of {_CHAIN}": lambda: store.get_response_chain(
                _ACCESS, last, items_max=2_000, bytes_max=_BYTES_MAX
            ),
            "the newest 100 items": lambda: store.newest_items(
                _ACCESS, room, items_max=100, bytes_max=_BYTES_MAX
            ),
            "a page of 20 items": lambda: store.list_items(_ACCESS, room, PageAsk(limit=20)),
            "events to a log": self._log,
            "events of a log": lambda: store.read_events(_ACCESS, last, after=-1, limit=16),
            "a response deleted": self._delete,
        }

    async def _alone(self) -> None:
        await self._store.commit_turn(_ACCESS, self._maker.turn(self._now_us()))

    async def _in_room(self) -> None:
        turn = self._maker.turn(self._now_us(), thread=self._thread, conversation_id=self._room.id)
        await self._store.commit_turn(_ACCESS, turn)

    async def _log(self) -> None:
        blob = EventBlob(self._blob, self._blob, b"x" * 400)
        self._blob += 1
        await self._store.append_events(
            _ACCESS, self._chain[-1].id, [blob], expires_us=self._now_us() + _HOUR_US
        )

    async def _delete(self) -> None:
        await self._store.delete_response(_ACCESS, self._doomed.pop())


async def calls(
    kind: str, url: str, *, clock_s: Callable[[], float], now_us: Callable[[], int]
) -> list[dict[str, Any]]:
    """Return a row for each operation of a store: how many calls, and its median time in microseconds."""
    owner = _PREFIX if kind == "redis" else ""
    options = StoreOptions(auto_migrate=True, schema=SchemaNames(owner=owner))
    store = open_store(url, options=options, now_us=now_us)
    await store.start()
    try:
        scene = Scene(store, now_us)
        await scene.begin()
        rows = []
        for name, ask in scene.operations().items():
            counted = await _count(kind, url, ask)
            times = []
            for _ in range(_REPEATS):
                begun_s = clock_s()
                await ask()
                times.append(clock_s() - begun_s)
            rows.append(
                {"store": kind, "operation": name, "calls": counted, "us": 1e6 * median(times)}
            )
        return rows
    finally:
        await store.close()


async def _count(kind: str, url: str, ask: Operation) -> int | None:
    """Return how many statements or commands an operation takes; None where there are no such things."""
    if kind == "memory":
        await ask()
        return None
    if kind == "redis":
        async with _commands(url) as heard:
            await ask()
        return len(heard)
    with _statements() as heard:
        await ask()
    return len(heard)


@contextmanager
def _statements() -> Iterator[list[str]]:
    """Collect the statements sent to databases inside; the begin of an SQLite transaction is left
    out.
    """
    from sqlalchemy import Engine, event

    heard: list[str] = []

    def hear(
        _connection: Any, _cursor: Any, statement: str, _values: Any, _context: Any, _many: Any
    ) -> None:
        if not statement.startswith("BEGIN"):
            heard.append(statement)

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield heard
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


@asynccontextmanager
async def _commands(url: str) -> AsyncIterator[list[str]]:
    """Collect the commands sent to a server inside; filled at the end."""
    from redis.asyncio import Redis

    heard: list[str] = []
    where = urlsplit(url)
    host, port = where.hostname or "127.0.0.1", where.port or 6379
    async with Redis(host=host, port=port) as teller, Redis(host=host, port=port).monitor() as ear:
        yield heard
        await teller.echo(_END)
        while (told := await ear.next_command())["command"] != f"ECHO {_END}":
            command = str(told["command"])
            if told["client_type"] != "lua" and not command.startswith(("HELLO", "CLIENT")):
                heard.append(command)
