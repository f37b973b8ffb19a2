"""Paced steps: runs long work on a large history in slices on the event loop.

Slices on the loop, not a thread: the work is pure Python, so a thread would hold the interpreter
lock, and the loop would wait up to five milliseconds for it at each of its turns.
"""

import asyncio
from typing import Final, TypeVar

from smg_node.core.cooperative_steps import Steps

SLICE_WEIGHT: Final = 128 << 10
"""After so much the others have their turn: about a millisecond, of reading items and making turns of them."""

T = TypeVar("T")


async def paced(steps: Steps[T]) -> T:
    """Run the steps, yielding to the loop after every slice, and return their result."""
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
