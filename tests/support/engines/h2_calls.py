"""Calls over our own HTTP/2, read to their end."""

import asyncio
from collections.abc import Sequence

import pytest

from smg_node.engines.transport.h2.h2_transport import H2Transport
from smg_node.engines.transport.transport import MessageStream, Take, TransportError

METHOD = "/t.T/Say"
GENEROUS_S = 20.0


def call(transport: H2Transport, timeout_s: float = GENEROUS_S) -> MessageStream:
    return transport.stream(METHOD, b"ask", timeout_s=timeout_s)


def into(got: list[bytes]) -> Take:
    def take(batch: Sequence[bytes]) -> bool:
        got.extend(batch)
        return True

    return take


async def all_of(stream: MessageStream) -> list[bytes]:
    got: list[bytes] = []
    assert await stream.pour(into(got))
    return got


async def failure(stream: MessageStream) -> TransportError:
    async with asyncio.timeout(GENEROUS_S):
        with pytest.raises(TransportError) as raised:
            await all_of(stream)
    return raised.value
