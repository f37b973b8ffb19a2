"""Rested steps: work in a thread, in steps, that lets others have the interpreter's lock now and then."""

import time
from typing import Final, TypeVar

from smg_node.core.cooperative_steps import REST_S, Steps

_WORK_A_REST: Final = 64 * 1024
"""So much is weighed between two rests; about 5 ms of work."""
_Made = TypeVar("_Made")


def with_rests(steps: Steps[_Made]) -> _Made:
    """Do all steps, resting in between; return what came of them."""
    weighed = 0
    while True:
        try:
            weighed += next(steps)
        except StopIteration as end:
            made: _Made = end.value
            return made
        if weighed >= _WORK_A_REST:
            weighed = 0
            time.sleep(REST_S)
