"""A store under a node that is fated: the node is killed before, while or after it asks the store for something."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import Call, StoreWrapper

When = Literal["before", "within", "after"]
_WITHIN_S = 0.000_3
"""Long enough for a statement to be on its way, too short for its answer: which of both it is, is left to chance."""


@dataclass(frozen=True, slots=True)
class Fate:
    """When a node dies: around the n-th time that it asks for this operation. Never if that is 0."""

    operation: str = ""
    number: int = 0
    when: When = "before"


class DoomedStore(StoreWrapper):
    """The store, and the fate of whoever uses it."""

    def __init__(self, inner: HistoryStore, fate: Fate) -> None:
        super().__init__(inner)
        self._fate = fate
        self._asked: Counter[str] = Counter()

    async def _through(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        fate = self._fate
        self._asked[call.operation] += 1
        if (call.operation, self._asked[call.operation]) != (fate.operation, fate.number):
            return await run()
        if fate.when == "before":
            die()
        if fate.when == "within":
            asyncio.get_running_loop().call_later(_WITHIN_S, die)
        answer = await run()
        die()
        return answer


def die() -> None:
    """Do not come back, and clean up nothing."""
    os.kill(os.getpid(), signal.SIGKILL)
