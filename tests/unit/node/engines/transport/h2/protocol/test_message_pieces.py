"""A request in pieces is the request joined: in frames of the server's size, within its windows, and without a copy."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.send_window import Sending
from smg_node.engines.transport.h2.protocol.stream_state import Flow
from smg_node.engines.transport.message_pieces import MessagePieces

CONTENT = bytes(range(256)) * 400


def payload_of(written: bytes) -> tuple[bytes, list[int], bool]:
    """Return the bytes of the DATA frames, their sizes, and whether the last one ends the request."""
    content, sizes, at, last = b"", [], 0, False
    while at < len(written):
        word, flags, _ = frames.HEAD.unpack_from(written, at)
        size = word >> 8
        at += frames.HEAD_BYTES
        if word & 0xFF == frames.DATA:
            content += written[at : at + size]
            sizes.append(size)
            last = bool(flags & frames.END_STREAM)
        at += size
    return content, sizes, last


@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), max_size=8),
    window=st.integers(1, 200_000),
    frame_max=st.sampled_from([16_384, 20_000, 1 << 20]),
    opened=st.lists(st.integers(1, 70_000), min_size=1, max_size=5),
)
def test_pieces_go_out_as_the_message_joined(
    cuts: list[int], window: int, frame_max: int, opened: list[int]
) -> None:
    bounds = [0, *sorted(cuts), len(CONTENT)]
    message = MessagePieces([CONTENT[a:b] for a, b in pairwise(bounds)])
    assert (len(message), message.joined()) == (len(CONTENT), CONTENT)
    sending, flow = Sending(), Flow()
    sending.enlarge(frame_max)
    sending.reopen(window, [])
    sending.begin(flow, b"\x83", message)
    written = b""
    for at in range(10_000):
        sending.pump(1 << 18)
        written += b"".join(sending.views())
        if not flow.unsent:
            break
        more = opened[at % len(opened)] + 100
        sending.widen_all(more)
        sending.widen(flow, more)
    content, sizes, last = payload_of(written)
    assert content == b"\x00" + len(CONTENT).to_bytes(4, "big") + CONTENT
    assert max(sizes) <= frame_max
    assert last


def test_what_is_written_are_views_of_the_buffers_that_came() -> None:
    buffer = bytearray(100_000)
    sending, flow = Sending(), Flow()
    sending.reopen(1 << 20, [])
    sending.widen_all(1 << 20)
    sending.begin(flow, b"\x83", MessagePieces([b"head", buffer]))
    sending.pump(1 << 20)
    views = [one for one in sending.views() if isinstance(one, memoryview) and one.obj is buffer]
    assert sum(map(len, views)) == len(buffer)
    assert not sending.out


def test_a_small_message_in_pieces_is_one_frame_as_any_other() -> None:
    sending, flow = Sending(), Flow()
    sending.begin(flow, b"\x83", MessagePieces([b"a", b"", b"bc"]))
    content, sizes, last = payload_of(sending.taken())
    assert (content, sizes, last) == (b"\x00\x00\x00\x00\x03abc", [8], True)


def test_a_call_that_is_dropped_lets_go_of_its_buffers() -> None:
    buffer = bytearray(100_000)
    sending, flow = Sending(), Flow()
    sending.begin(flow, b"\x83", MessagePieces([buffer]))
    assert flow.unsent
    sending.drop(flow)
    assert not flow.unsent
    sending.pump(1 << 20)
    buffer.append(0)  # a buffer that somebody looks at cannot grow
    assert len(buffer) == 100_001


def test_buffers_of_wider_items_are_counted_in_bytes() -> None:
    numbers = memoryview(bytearray(32)).cast("Q")
    assert len(MessagePieces([numbers])) == 32
