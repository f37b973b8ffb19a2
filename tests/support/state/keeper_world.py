"""A keeper of pieces with its clock, its counters, and pieces that are plain bytes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from smg_mesh.io.counters import Counters
from smg_mesh.io.shared_state.state_files import StateFolder
from smg_mesh.io.shared_state.state_keeper import Keeper, Recalled
from smg_mesh.sync.exchange.piece_interface import PieceError

HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


class KeptPieces:
    """What is kept: plain bytes by name."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.threads: set[int] = set()
        self.wrong = ""
        self.fault = ""

    def dump(self, name: str) -> bytes:
        if name == self.fault:
            raise KeyError("a mistake of ours")
        self.threads.add(threading.get_ident())
        return self.held.get(name, b"")

    def load(self, name: str, content: bytes) -> None:
        self.threads.add(threading.get_ident())
        if self.wrong:
            raise PieceError(self.wrong, f"{name}: it makes no sense")
        self.held[name] = content


class KeepWorld:
    """A keeper with its pieces, clock and counters."""

    def __init__(
        self, folder: Path | None, *, before: Path | None = None, apart_ms: int = 20
    ) -> None:
        self.pieces = KeptPieces()
        self.counters = Counters()
        self.wall_ms = 1_700_000_000_000
        self.boot = 1
        self.boots: list[int] = []
        self.keeper = Keeper(
            folder,
            pieces=self.pieces,
            before=() if before is None else (before,),
            save_apart_ms=apart_ms,
            absent_max_ms=WEEK_MS,
            counters=self.counters,
            wall_ms=lambda: self.wall_ms,
        )

    async def open(self) -> Recalled:
        return await self.keeper.open(self.begin)

    def begin(self, boot: int) -> int:
        assert self.pieces.held == {}
        self.boots.append(boot)
        return self.boot

    def change(self, **contents: bytes) -> None:
        for name, content in contents.items():
            self.pieces.held[name.replace("_", "/")] = content
            self.keeper.changed(name.replace("_", "/"))

    def count(self, detail: str) -> int:
        return self.counters.get("state_file", detail)


@asynccontextmanager
async def running(world: KeepWorld) -> AsyncIterator[KeepWorld]:
    await world.open()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.keeper.run())
        yield world
        task.cancel()
    await world.keeper.close()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.005)


def on_disk(folder: Path) -> dict[str, bytes]:
    """Return what another life would find."""
    other = StateFolder(folder)
    try:
        return dict(other.open().pieces)
    finally:
        other.close()
