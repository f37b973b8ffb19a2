"""Large bodies: decoded and read in a thread of their own, one after the other, unless they are large by files only.

Other streams go on meanwhile: the thread works in steps, and lets go of the interpreter's lock after every
slice of them, of about a millisecond. Where it has no steps to do, the loop waits for the interpreter's next
switch at most. One thread, because several would have it wait once for each.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from smg_node.core.cooperative_steps import ITEM_WEIGHT, REST_S, Steps, whole
from smg_node.dialects.json_body import (
    LARGE_BYTES,
    NESTING_MAX,
    is_light,
    read_json,
    read_large_json,
)

T = TypeVar("T")

SLICE_WEIGHT: Final = 32_768
"""After so much the loop has the interpreter's lock if it wants it: decoding as many bytes takes about a millisecond."""

_FREED_AT_ONCE = 16_384
"""Elements; a list that is let go of whole is freed in one step, however long it is."""
_PARTS_FREED_AT_ONCE = 256
_FREED_WEIGHT = 64
"""A freed part takes a sixteenth of the time in which one is read."""


class LargeBodies:
    """Reads bodies, small and light ones at once. The thread is started for the first large one."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def decoded(self, raw: bytes, *, nesting_max: int = NESTING_MAX) -> dict[str, Any]:
        """Return the object that a body spells; errors as `read_json` has them."""
        if _is_quick(raw):
            return read_json(raw, nesting_max=nesting_max)
        return await self._in_thread(
            partial(read_large_json, raw, nesting_max=nesting_max, run=with_rests)
        )

    async def read(
        self, raw: bytes, body: dict[str, Any], reader: Callable[[dict[str, Any]], T]
    ) -> T:
        """Return what `reader` makes of a decoded body, which is of no further use afterwards."""
        if _is_quick(raw):
            return reader(body)
        return await self._in_thread(partial(_read, body, reader))

    async def read_in_steps(
        self, raw: bytes, body: dict[str, Any], reader: Callable[[dict[str, Any]], Steps[T]]
    ) -> T:
        """Return what the steps of `reader` make of a decoded body, which is of no further use afterwards."""
        if _is_quick(raw):
            return whole(reader(body))
        return await self._in_thread(partial(_read, body, lambda body: with_rests(reader(body))))

    async def made(self, size: int, make: Callable[[], T]) -> T:
        """Return what `make` makes of so many bytes or of what takes as long, in the thread if they are many."""
        return make() if size <= LARGE_BYTES else await self._in_thread(make)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="smg-bodies")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def with_rests(steps: Steps[T], rest: Callable[[float], None] = time.sleep) -> T:
    """Do all steps, and let other threads go on after every slice of them; return what came of them."""
    left = SLICE_WEIGHT
    while True:
        try:
            left -= next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        if left <= 0:
            left = SLICE_WEIGHT
            rest(REST_S)


def _is_quick(raw: bytes) -> bool:
    return len(raw) <= LARGE_BYTES or is_light(raw, heavy_max=LARGE_BYTES)


def _read(body: dict[str, Any], reader: Callable[[dict[str, Any]], T]) -> T:
    try:
        return reader(body)
    finally:
        release_numbers(body)
        with_rests(release_messages(body))


def release_messages(body: dict[str, Any]) -> Steps[None]:
    """Empty the `messages` of a body and the lists of their parts, bit by bit; readers have turns of their own.

    A conversation of megabytes has a hundred thousand objects: freed in one step they would stop the loop.
    """
    messages = body.get("messages")
    while type(messages) is list and messages:
        message = messages.pop()
        content = message.get("content") if type(message) is dict else None
        while type(content) is list and content:
            yield min(len(content), _PARTS_FREED_AT_ONCE) * _FREED_WEIGHT
            del content[-_PARTS_FREED_AT_ONCE:]
        yield ITEM_WEIGHT


def release_numbers(body: dict[str, Any]) -> None:
    """Empty the lists of numbers in a body, bit by bit; readers have them as arrays of their own."""
    for value in body.values():
        if type(value) is list and value:
            for row in value if type(value[0]) is list else [value]:
                if type(row) is list and row and type(row[0]) is int:
                    while row:
                        del row[-_FREED_AT_ONCE:]
