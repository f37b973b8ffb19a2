"""A head whose values are filled in says what one says that is put together header by header."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.http.http_options import HttpOptions
from smg_node.http.message.event_stream import EventStream
from smg_node.http.message.head_findings import HeadFindings
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import HeadWriter
from smg_node.http.message.request_head import Head
from smg_node.http.message.response_writer import Wire
from smg_node.http.middleware.caller_context import head_hints
from smg_node.http.routes.inference.answer_headers import Answering
from support.tools.example_counts import example_count

NAMES = st.sampled_from(["x-ratelimit-limit-requests", "x-smg-limit", "x-%s", "x-smg-limit-state"])
VALUES = st.text("a1% é", max_size=4)
PAGES = st.sampled_from([{}, {"access-control-allow-origin": "*"}, {"vary": "origin %s"}])
ANSWERS = st.fixed_dictionaries(
    {
        "limits": st.none() | st.dictionaries(NAMES, VALUES, max_size=4),
        "worker": st.sampled_from(["w-1", "w-%2", ""]),
        "attempts": st.integers(1, 9),
        "ignored": st.sampled_from([(), (), ("top_k",)]),
        "wished": st.sampled_from([(), (), ("seed",)]),
        "more": st.sampled_from([None, None, {"x-smg-store": "memory"}]),
        "keep_alive": st.booleans(),
        "http11": st.sampled_from([True, True, False]),
        "body": st.none() | st.binary(min_size=1, max_size=9),
        "wants_body": st.sampled_from([True, True, False]),
        "pass_s": st.sampled_from([0.0, 0.0004, 0.7, 2.0]),
    }
)


class ManualClock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return int(self.now_s * 1000)


class Transport:
    """Takes what is written."""

    def __init__(self) -> None:
        self.got = b""

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.got += data

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return 0, 0

    def set_write_buffer_limits(self, *, high: int, low: int = 0) -> None:
        pass


class Door:
    """Answers the requests of one head, in one of both ways."""

    def __init__(self, clock: ManualClock, page: Mapping[str, str], *, exposed: bool) -> None:
        self.clock = clock
        self.options = HttpOptions(expose_routing_headers=exposed)
        self.parts: Any = SimpleNamespace(
            clock=clock,
            options=self.options,
            identity=SimpleNamespace(node="n%1"),
            meters=SimpleNamespace(ignored_parameter=lambda name: None),
        )
        self.heads = HeadWriter(clock)
        self.standing = HeadFindings("POST", "/v1/chat/completions")
        self.standing.options = self.options
        self.standing.reply_headers = page
        self.head = Head("POST", "/v1/chat/completions", {}, (), http11=True, keep_alive=True)

    def told(self, answer: Mapping[str, Any], received_s: float, *, shaped: bool) -> bytes:
        """Return the bytes of an answer; header by header where it is not to be shaped."""
        transport = Transport()
        line: Any = SimpleNamespace(
            transport=transport, sent_bytes=0, peer="", writing_paused=False
        )
        request = HttpRequest(self.head, cast("Any", None), line)
        request.request_id, request.received_s = "req_%s", received_s
        request.standing = self.standing
        wire = request.wire = Wire(line, self.heads, answer["http11"], answer["keep_alive"])
        wire.wants_body = answer["wants_body"]
        if self.standing.asked is None:
            self.standing.asked = head_hints(request, self.options)
        limits = answer["limits"]
        run: Any = SimpleNamespace(
            worker=answer["worker"],
            attempts=answer["attempts"],
            ignored=answer["ignored"],
            ticket=None if limits is None else SimpleNamespace(headers=lambda family: dict(limits)),
        )
        more, wish = answer["more"], cast("Any", SimpleNamespace(ignored=answer["wished"]))
        answering = Answering(self.parts, request, wish, run, more and (lambda: more))
        body = answer["body"]
        if body is None:
            stream = EventStream(wire, answering.head if shaped else answering.note)
            stream.put(b"data: 1\n\n")
        else:
            reply = (answering.shaped(body) if shaped else None) or answering.noted(body)
            wire.reply(reply, {} if reply.form else request.reply_headers)
        assert request.worker == answer["worker"]
        assert (line.sent_bytes, wire.bytes_out, wire.begun) == (*[len(transport.got)] * 2, True)
        return transport.got


@settings(max_examples=example_count(300))
@given(st.lists(ANSWERS, min_size=1, max_size=6), PAGES, st.sampled_from([True, True, False]))
def test_both_say_the_same(
    answers: list[dict[str, Any]], page: dict[str, str], exposed: bool
) -> None:
    clock = ManualClock()
    door = Door(clock, page, exposed=exposed)
    for answer in answers + answers:
        received_s = clock.monotonic_s()
        clock.now_s += answer["pass_s"]
        assert door.told(answer, received_s, shaped=True) == door.told(
            answer, received_s, shaped=False
        )


@pytest.mark.parametrize("evil", ["a\nb: c", "a\r\nb: c", "a\rb"])
@pytest.mark.parametrize("where", ["worker", "limits"])
def test_a_value_cannot_smuggle_in_a_header(evil: str, where: str) -> None:
    usual = {
        "limits": None, "worker": "w", "attempts": 1, "ignored": (), "wished": (), "more": None, "keep_alive": True,
        "http11": True, "body": b"{}", "wants_body": True,
    }  # fmt: skip
    door = Door(ManualClock(), {}, exposed=True)
    evilly = {**usual, where: evil if where == "worker" else {"x-smg-limit": evil}}
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"line break|carriage return"):
            door.told(evilly, 0.0, shaped=True)
        assert door.told(usual, 0.0, shaped=True).startswith(b"HTTP/1.1 200 OK\r\n")
