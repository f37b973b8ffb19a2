"""Vendor stream: the bytes of a vendor's answer without its hosting's frames, up to what comes behind its end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.http.response_stream import HttpStream
from smg_node.engines.http.vendor_side import Unframer
from smg_node.pipeline.relay.answer_collector import WHOLE_MAX_BYTES

TAIL_S: Final = 2.0
"""How long a vendor may keep its connection open after the end of an answer; usage may come behind it."""


def reading(
    stream: HttpStream, unframer: Unframer | None, finished: Callable[[], bool]
) -> Callable[[], Awaitable[bytes]]:
    """Return what reads the stream, b"" at its end.

    Once the answer has `finished` its vendor may go on a little, with what it cost, and may as well break.
    """

    async def unframed() -> bytes:
        assert unframer is not None, "it was asked"
        while piece := await stream.read():
            if told := unframer.feed(piece):
                return told
        return unframer.finish()

    read = stream.read if unframer is None else unframed

    async def read_on() -> bytes:
        if not finished():
            return await read()
        try:
            async with asyncio.timeout(TAIL_S):
                return await read()
        except (SmgError, WorkerError, TimeoutError):
            return b""

    return read_on


async def whole(stream: HttpStream) -> bytes:
    """Return the body of an answer that is not streamed; UPSTREAM_FAILED for one without an end."""
    parts, size = list[bytes](), 0
    while piece := await stream.read():
        parts.append(piece)
        size += len(piece)
        if size > WHOLE_MAX_BYTES:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the vendor's answer has more than {WHOLE_MAX_BYTES} bytes",
            )
    return b"".join(parts)
