"""Frames of an exchange: any bytes give a frame or an `ExchangeError`, and machines survive both."""

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.streams.frames import decode_frame, encode_frame
from smg_mesh.sync.exchange import Exchange, ExchangeError, Novel, Rows
from support.exchanges import claims, opening

REAL = [
    encode_frame(opening("b", full=True)),
    encode_frame(Rows(tuple(claims(3)), last=False)),
    encode_frame(Rows(tuple(claims(2)), last=True)),
    encode_frame(Novel(ignorable=True)),
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
        again = decode_frame(encode_frame(frame)) if isinstance(frame, Rows | Novel) else frame
        assert again == frame
    assert reason == "wire"


@given(st.lists(st.one_of(st.sampled_from(REAL), damaged()), max_size=8), st.booleans())
def test_any_frames_in_any_order_move_a_machine_or_end_it(said: list[bytes], opener: bool) -> None:
    machine = Exchange(opening("a"), lambda: claims(2), opener=opener)
    ended = False
    for data in said:
        try:
            machine.receive(decode_frame(data))
        except ExchangeError:
            ended = True
            break
    assert (
        ended
        or machine.peer is not None
        or all(decode_frame(d) == Novel(ignorable=True) for d in said)
    )
