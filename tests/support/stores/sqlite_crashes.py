"""Processes that die while they keep a turn: one for every statement that they die before.

Run as a program with a folder. It forks for each, so that all is loaded once.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from smg_storage.options import StoreOptions
from smg_storage.sql.open import open_store
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import Stage
from support.stores.sql_costs import COSTS, full_turn
from support.stores.sql_recorder import before_each

STATEMENTS = COSTS["commit_turn_with_everything"][0]


def die() -> None:
    """Do not come back."""
    os.kill(os.getpid(), signal.SIGKILL)


def tell(*words: object) -> None:
    """Say something, at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def keep_a_turn(folder: Path, last: int) -> None:
    """Keep a turn, but die before that statement; after the last one there is only the commit."""
    store = open_store(parse_store_url(f"sqlite:///{folder}/{last}.db"), StoreOptions(), Clock())
    await store.start()
    stage = Stage(Opened(store, store, Clock()))
    turn = full_turn(stage, await stage.new_conversation())
    names = (turn.response.conversation_id, turn.response.id, turn.items[0].id)
    tell(last, *names)
    heard: list[str] = []

    def hear(statement: str) -> None:
        heard.append(statement)
        if len(heard) == last:
            die()

    with before_each(hear):
        await store.commit_turn(stage.access, turn)
    tell(last, "kept")
    die()


def main(folder: Path) -> None:
    """Let one die before each statement, and one after all."""
    for last in range(1, STATEMENTS + 2):
        child = os.fork()
        if child == 0:
            asyncio.run(keep_a_turn(folder, last))
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"{last} did not die")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
