"""Offers of WebSocket, as the parser of requests takes them: nothing behind one is a request."""

from typing import Any, cast

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.server.request_parser import RequestReader

PLAIN = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = b"GET /s HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
BEHIND = b"\x81\x82\x00\x00\x00\x00hi" + PLAIN


class Flow:
    peer = ""
    certificate = None
    pauses = 0

    def pause_reading(self) -> None:
        self.pauses += 1

    def resume_reading(self) -> None:
        self.pauses -= 1


def reading() -> tuple[RequestReader, list[HttpRequest], Flow]:
    flow, found = Flow(), list[HttpRequest]()
    line = cast("Any", flow)
    reader = RequestReader(line, line, found.append, line_max_bytes=8_192, headers_max=64)
    return reader, found, flow


def test_what_follows_an_offer_is_held_for_whoever_takes_it() -> None:
    sent = PLAIN + HEAD + b"\r\n" + BEHIND
    for first in range(len(sent) + 1):
        for second in (first, min(first + 3, len(sent)), len(sent)):
            reader, found, flow = reading()
            for part in (sent[:first], sent[first:second], sent[second:]):
                reader.feed(part)
            assert [request.body.whole for request in found] == [True, False]
            # Nothing more is read before somebody has decided.
            assert flow.pauses == 1
            assert reader.hand_over() == BEHIND
            reader.feed(b"what comes later is nobody's here")
            assert len(found) == 2


def test_an_offer_with_a_body_or_of_another_method_is_none() -> None:
    for offer in (
        HEAD + b"Content-Length: 2\r\n\r\nhi",
        HEAD.replace(b"GET", b"POST") + b"\r\n",
    ):
        reader, found, flow = reading()
        reader.feed(offer + PLAIN)
        assert [request.head.target for request in found] == ["/s", "/"]
        assert flow.pauses == 0


async def test_what_nobody_takes_never_is_whole() -> None:
    reader, found, _ = reading()
    reader.feed(HEAD + b"\r\n" + BEHIND)
    [offered] = found
    assert (await offered.body.more(), offered.body.take(), offered.body.whole) == (b"", b"", False)
    reader.close()
