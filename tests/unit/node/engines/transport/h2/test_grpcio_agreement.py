"""What a server does wrong means the same over our own HTTP/2 and over the library."""

from collections.abc import Callable

import pytest

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.hpack import literal
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.engines.h2_server import FINE, HEAD, H2Server, Peer, answer, body, head, message, tail
from support.engines.transports import transport_to

GENEROUS_S = 20.0
ONE = message(b"one")

SAID: dict[str, Callable[[int], bytes]] = {
    "an answer": lambda n: answer(n, b"one", b"", b"three"),
    "several messages a frame": lambda n: head(n) + body(n, ONE * 3) + tail(n),
    "a message in pieces": lambda n: head(n) + body(n, ONE[:6]) + body(n, ONE[6:]) + tail(n),
    "nothing but a status": lambda n: tail(n, HEAD + literal(b"grpc-status", b"9")),
    "nothing but headers": lambda n: tail(n, HEAD),
    "trailers without a status": lambda n: head(n) + body(n, ONE) + tail(n, literal(b"x", b"y")),
    "a status nobody knows": lambda n: head(n) + tail(n, literal(b"grpc-status", b"99")),
    "a status twice": lambda n: (
        head(n) + tail(n, literal(b"grpc-status", b"5") + literal(b"grpc-status", b"7"))
    ),
    "words in percent": lambda n: (
        head(n)
        + tail(n, literal(b"grpc-status", b"5") + literal(b"grpc-message", b"a%20b%c3%a4%zz"))
    ),
    "trailers": lambda n: (
        head(n)
        + tail(n, literal(b"grpc-status", b"5") + literal(b"why", b"a") + literal(b"x-bin", b"YQ"))
    ),
    "compressed": lambda n: head(n) + body(n, message(b"a", squeezed=1)) + tail(n),
    "HTTP 404": lambda n: tail(n, literal(b":status", b"404")),
    "HTTP 503": lambda n: tail(n, literal(b":status", b"503")),
    "HTTP 429 with a status": lambda n: tail(
        n, literal(b":status", b"429") + literal(b"grpc-status", b"5")
    ),
    "a page": lambda n: (
        head(n, literal(b":status", b"200") + literal(b"content-type", b"text/html"))
        + body(n, b"<html>", frames.END_STREAM)
    ),
    "headers over the limit": lambda n: frames.headers(
        n, FINE + literal(b"x", b"y" * 100_000), frames.FRAME_MAX_BYTES, last=True
    ),
    "going away": lambda n: frames.frame(frames.GOAWAY, 0, 0, bytes(8)),
    "going away after this": lambda n: (
        frames.frame(frames.GOAWAY, 0, 0, n.to_bytes(4, "big") + bytes(4)) + answer(n, b"one")
    ),
    **{f"reset {code}": lambda n, code=code: frames.reset(n, code) for code in range(14)},  # type: ignore[misc]  # a default is no part of the type
}


async def heard(
    kind: str, said: Callable[[int], bytes]
) -> tuple[list[bytes], StatusCode, str, dict[str, str]]:
    async def script(peer: Peer, number: int) -> None:
        peer.say(said(number))

    got: list[bytes] = []
    async with H2Server(script) as server, transport_to(kind, server.target) as transport:
        stream = transport.stream("/t.T/Say", b"ask", timeout_s=GENEROUS_S)
        try:
            async for batch in stream:
                got += batch
        except TransportError as error:
            ours = error.status in (StatusCode.NOT_FOUND, StatusCode.FAILED_PRECONDITION)
            # Statuses that the server gave come with its words; the others have each library's own.
            words = error.message if ours else ""
            return got, error.status, words, dict(error.trailers)
    return got, StatusCode.OK, "", {}


@pytest.mark.parametrize("name", SAID)
async def test_both_hear_the_same(name: str) -> None:
    assert await heard("h2", SAID[name]) == await heard("grpcio", SAID[name])
