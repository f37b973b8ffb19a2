"""Cooperative steps: long CPU work as a generator, so that its runner can give way to others.

A generator that yields what each step weighed, in bytes or what takes as long, and returns what
came of it. It knows neither clock nor loop; its runner decides how often to give way.
"""

from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[int, None, T]

ITEM_WEIGHT: Final = 1_024
"""What a thing of any size weighs besides its bytes: looking at a small one takes as long as reading a kibibyte."""

REST_S: Final = 1e-6
"""How long a thread sleeps to let others have the interpreter's lock; it becomes some 60 us. At zero it would take the
lock again before another one wakes up."""


def whole(steps: Steps[T]) -> T:
    """Do all of it at once, and return what came of it."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
