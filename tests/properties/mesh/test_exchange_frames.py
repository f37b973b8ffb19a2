"""Frames of an exchange: any bytes give a frame or an `ExchangeError`, and machines survive both."""

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.streams.frames import decode_frame, encode_frame
from smg_mesh.sync.exchange.exchange_frames import (
    CHUNK_BYTES_MAX,
    SUMMARY_BYTES_MAX,
    Asked,
    Declined,
    Done,
    Holdings,
    Request,
    Update,
)
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Novel, Opening, Rows
from smg_mesh.sync.exchange.piece_interface import PieceState
from support.state.exchanges import claims, opening, side, take
from support.state.fake_pieces import FakePieces

REAL = [
    encode_frame(opening("b", full=True)),
    encode_frame(Rows(tuple(claims(3)), last=False)),
    encode_frame(Rows(tuple(claims(2)), last=True)),
    encode_frame(Novel(ignorable=True)),
    encode_frame(opening("b", full=True, pieces=True, history=b"history!", held=False)),
    encode_frame(Holdings((PieceState("settings/1", 1, bytes(16), 10),), last=True)),
    encode_frame(Request((Asked("settings/1", 1, b"\x81\xa1k\x01"), Asked("a", 0, bytes(3000))))),
    encode_frame(Update("settings/1", 1, b"\x80", b"\x80", last=True)),
    encode_frame(Update("settings/1", 1, b"", bytes(CHUNK_BYTES_MAX), last=False)),
    encode_frame(Declined("settings/1", 2)),
    encode_frame(Done()),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a real frame with a bit turned, a piece cut out, or something put in."""
    data = bytearray(draw(st.sampled_from(REAL)))
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    match draw(st.sampled_from(["flip", "cut", "add", "end"])):
        case "flip" if data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        case "cut":
            del data[at : at + draw(st.integers(1, 8))]
        case "add":
            data[at:at] = draw(st.binary(max_size=8))
        case _:
            del data[at:]
    return bytes(data)


@given(st.one_of(st.binary(max_size=64), damaged()))
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except ExchangeError as error:
        reason = error.reason
    else:
        reason = "wire"
        again = frame if isinstance(frame, Opening) else decode_frame(encode_frame(frame))
        assert again == frame
        if isinstance(frame, Update):
            assert len(frame.chunk) <= CHUNK_BYTES_MAX
            assert len(frame.summary) <= SUMMARY_BYTES_MAX
    assert reason in ("wire", "size")


@given(
    st.lists(st.one_of(st.sampled_from(REAL), damaged()), max_size=8), st.booleans(), st.booleans()
)
def test_any_frames_in_any_order_move_a_machine_or_end_it(
    said: list[bytes], opener: bool, pieces: bool
) -> None:
    machine = Exchange(opening("a"), lambda: claims(2), opener=opener)
    if pieces:
        machine = side("a", FakePieces("settings/1", "settings/2"), opener=opener, rows=claims(2))
    ended = False
    for data in said:
        try:
            take(machine, decode_frame(data))
        except ExchangeError:
            ended = True
            break
    assert (
        ended
        or machine.peer is not None
        or all(decode_frame(d) == Novel(ignorable=True) for d in said)
    )
