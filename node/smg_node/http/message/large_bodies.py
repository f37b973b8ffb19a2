"""Large bodies: decoded and read in a thread of their own, one after the other.

Other streams go on meanwhile: the thread decodes in pieces and reads in Python, so the loop waits for the
interpreter's next switch at most. One thread, because several would have it wait once for each.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from smg_node.dialects.json_body import LARGE_BYTES, NESTING_MAX, read_json, read_large_json

T = TypeVar("T")

_FREED_AT_ONCE = 16_384
"""Elements; a list that is let go of whole is freed in one step, however long it is."""
_PARTS_FREED_AT_ONCE = 256


class LargeBodies:
    """Reads bodies, small ones at once. The thread is started for the first large one."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def decoded(self, raw: bytes, *, nesting_max: int = NESTING_MAX) -> dict[str, Any]:
        """Return the object that a body spells; errors as `read_json` has them."""
        if len(raw) <= LARGE_BYTES:
            return read_json(raw, nesting_max=nesting_max)
        return await self._in_thread(partial(read_large_json, raw, nesting_max=nesting_max))

    async def read(
        self, raw: bytes, body: dict[str, Any], reader: Callable[[dict[str, Any]], T]
    ) -> T:
        """Return what `reader` makes of a decoded body, which is of no further use afterwards."""
        if len(raw) <= LARGE_BYTES:
            return reader(body)
        return await self._in_thread(partial(_read, body, reader))

    async def made(self, size: int, make: Callable[[], T]) -> T:
        """Return what `make` makes of so many bytes or of what takes as long, in the thread if they are many."""
        return make() if size <= LARGE_BYTES else await self._in_thread(make)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="smg-bodies")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _read(body: dict[str, Any], reader: Callable[[dict[str, Any]], T]) -> T:
    try:
        return reader(body)
    finally:
        release_numbers(body)
        release_messages(body)


def release_messages(body: dict[str, Any]) -> None:
    """Empty the `messages` of a body and the lists of their parts, bit by bit; readers have turns of their own.

    A conversation of megabytes has a hundred thousand objects: freed in one step they would stop the loop.
    """
    messages = body.get("messages")
    while type(messages) is list and messages:
        message = messages.pop()
        content = message.get("content") if type(message) is dict else None
        while type(content) is list and content:
            del content[-_PARTS_FREED_AT_ONCE:]


def release_numbers(body: dict[str, Any]) -> None:
    """Empty the lists of numbers in a body, bit by bit; readers have them as arrays of their own."""
    for value in body.values():
        if type(value) is list and value:
            for row in value if type(value[0]) is list else [value]:
                if type(row) is list and row and type(row[0]) is int:
                    while row:
                        del row[-_FREED_AT_ONCE:]
