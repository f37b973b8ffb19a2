"""How long work on a large history holds the loop: the streams of others go on while it is done.

Work in slices on the loop, not in a thread: what takes long here is Python's own, so a thread would make the loop wait
for the interpreter instead, five milliseconds at a time, at each of its turns.
"""

import asyncio
from typing import Final, TypeVar

from smg_node.core.cooperative_steps import Steps

SLICE_WEIGHT: Final = 128 << 10
"""After so much the others have their turn: about a millisecond, of reading items and making turns of them."""

T = TypeVar("T")


async def paced(steps: Steps[T]) -> T:
    """Do it, giving way after every slice, and return what came of it."""
    left = SLICE_WEIGHT
    while True:
        try:
            left -= next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if left <= 0:
            left = SLICE_WEIGHT
            await asyncio.sleep(0)
