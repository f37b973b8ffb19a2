"""Processes that put turns into a spool and write them to a store, each killed at another step.

    python -m support.history.spool_crashes ROOT

Forks one child after the other: the first is killed before its first call to the disk, the second before its second,
and so on until one comes to its end; then again, killed in the middle of each write. What each left is in ROOT/N and
ROOT/N-half: `spool`, `acknowledged` and `store`, the ids of turns, one a line. Prints how many there were.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from smg_node.history.spool.spool_format import SpooledTurn
from smg_node.history.spool.spool_replay import Replay
from support.history.spools import ACCESS, spool_at, turn

_CALLS: Final = ("open", "write", "fsync", "unlink", "rmdir", "mkdir", "ftruncate")
_LIFE_MAX_S: Final = 60.0


class Fate:
    """Counts calls to the disk, and ends the process at one of them."""

    def __init__(self, at: int, *, half: bool) -> None:
        self._left = at
        self._half = half

    def over(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call with this fate over it."""

        def fated(*given: Any, **named: Any) -> Any:
            self._left -= not self._half or name == "write"
            if self._left == 0:
                if self._half:
                    file, content = given
                    real(file, bytes(content)[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)

        return fated


async def _live(root: Path) -> None:
    write = os.write
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    acknowledged, store = (os.open(root / name, flags) for name in ("acknowledged", "store"))

    async def commit(one: SpooledTurn) -> None:
        write(store, f"{one.turn.response.id}\n".encode())

    _meet_fate(root)
    spool = spool_at(root / "spool")
    replay = Replay(spool, commit, away=lambda: False, now_s=lambda: 0.0)
    for first in (1, 4):
        for number in range(first, first + 3):
            one = turn(1 + number % 2, number)
            await spool.add(ACCESS, one)
            write(acknowledged, f"{one.response.id}\n".encode())
        if first == 1:
            await replay.turn()
    await replay.turn()
    await spool.add(ACCESS, turn(1, 9))
    write(acknowledged, f"{turn(1, 9).response.id}\n".encode())
    await spool.close()


def _meet_fate(root: Path) -> None:
    number, _, half = root.name.partition("-")
    fate = Fate(int(number), half=bool(half))
    for name in _CALLS:
        setattr(os, name, fate.over(name, getattr(os, name)))


def _child(root: Path) -> bool:
    """Live one life; return whether it came to its end."""
    root.mkdir(parents=True)
    child = os.fork()
    if child == 0:
        signal.alarm(round(_LIFE_MAX_S))
        asyncio.run(_live(root))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), code
    return code == 0


def main() -> None:
    """Live them all."""
    root = Path(sys.argv[1])
    for kind in ("", "-half"):
        lives = 1
        while not _child(root / f"{lives}{kind}"):
            lives += 1
        sys.stdout.write(f"{lives}\n")


if __name__ == "__main__":
    main()
