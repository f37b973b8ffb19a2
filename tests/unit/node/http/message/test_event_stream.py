"""Events on one wire: in order, each once, and the last words with the end where both come together."""

import asyncio
from collections.abc import Mapping
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from smg_node.dialects.dialect import COMMENT
from smg_node.http.message.event_stream import EventStream, Holding
from smg_node.http.message.response_writer import Wire


class FakeWire:
    """Remembers its writes."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.behind = False
        self.gone = False
        self.ended = False

    def begin(
        self, _status: int, _headers: Mapping[str, str], first: bytes, *, last: bool = False
    ) -> None:
        assert not self.writes, "it begins once"
        self._write(first, last=last)

    def chunk(self, data: bytes) -> None:
        assert self.writes
        self._write(data, last=False)

    def end(self, data: bytes) -> None:
        self._write(data, last=True)

    def _write(self, data: bytes, *, last: bool) -> None:
        assert not self.ended
        if self.gone:
            raise ConnectionResetError("the client is gone")
        self.ended = last
        self.writes.append(data)


def stream_of(wire: FakeWire) -> EventStream:
    return EventStream(cast(Wire, wire), dict)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_last_words_and_the_end_are_one_write() -> None:
    wire = FakeWire()
    stream = stream_of(wire)
    holding = Holding()
    stream.hold(b"words ", holding)
    assert wire.writes == []
    await turns(1)
    stream.end(b"end")
    await turns(4)
    assert wire.writes == [b"words end"]
    assert stream.committed


async def test_the_first_words_of_a_stream_that_is_alone_leave_at_once() -> None:
    wire = FakeWire()
    stream = stream_of(wire)
    holding = Holding()
    stream.hold(b"words ", holding, alone=True)
    assert wire.writes == [b"words "]
    stream.hold(b"more ", holding, alone=True)
    stream.end(b"end")
    await turns(4)
    assert wire.writes == [b"words ", b"more end"]


async def test_last_words_do_not_wait_for_an_end_that_does_not_come() -> None:
    wire = FakeWire()
    stream = stream_of(wire)
    holding = Holding()
    stream.put(b"first ")
    stream.hold(b"words ", holding)
    await turns(3)
    assert wire.writes == [b"first ", b"words "]
    stream.end(b"end")
    assert wire.writes[-1] == b"end"


async def test_what_is_let_go_is_never_written() -> None:
    wire = FakeWire()
    stream = stream_of(wire)
    holding = Holding()
    stream.hold(b"words ", holding)
    stream.let_go()
    await turns(4)
    assert wire.writes == []
    assert not stream.committed


async def test_a_client_that_goes_meanwhile_breaks_nothing() -> None:
    wire = FakeWire()
    stream = stream_of(wire)
    holding = Holding()
    stream.hold(b"words ", holding)
    wire.gone = True
    await turns(4)
    assert wire.writes == []


async def test_of_many_that_hold_at_the_same_time_each_is_written() -> None:
    wires, holding = [FakeWire() for _ in range(4)], Holding()
    streams = [stream_of(wire) for wire in wires]
    for stream in streams[:3]:
        stream.hold(b"words ", holding)
    streams[0].end(b"end")
    await turns(1)
    streams[3].hold(b"words ", holding)
    wires[1].gone = True
    await turns(3)
    assert [wire.writes for wire in wires] == [[b"words end"], [], [b"words "], [b"words "]]


async def test_one_that_cannot_be_written_keeps_no_other_from_it() -> None:
    broken, whole, holding = FakeWire(), FakeWire(), Holding()
    stream = stream_of(broken)
    for one in (stream, stream_of(whole)):
        one.hold(b"words ", holding)
    broken.ended = True
    await turns(3)
    assert (broken.writes, whole.writes) == ([], [b"words "])


async def test_a_comment_keeps_its_place() -> None:
    wire = FakeWire()
    stream = stream_of(wire)
    holding = Holding()
    stream.hold(b"words ", holding)
    stream.ping()
    stream.end(b"end")
    await turns(4)
    assert b"".join(wire.writes) == b"words " + COMMENT + b"end"


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "hold", "turn"]), st.binary(max_size=4)), max_size=20
    )
)
def test_whatever_is_held_all_is_written_once_and_in_order(steps: list[tuple[str, bytes]]) -> None:
    async def run() -> None:
        wire = FakeWire()
        stream = stream_of(wire)
        holding = Holding()
        said = b""
        for what, words in steps:
            if what == "turn":
                await turns(1)
                continue
            said += words
            if what == "put":
                stream.put(words)
            else:
                stream.hold(words, holding)
        stream.end(b".")
        await turns(4)
        assert b"".join(wire.writes) == said + b"."

    asyncio.run(run())
