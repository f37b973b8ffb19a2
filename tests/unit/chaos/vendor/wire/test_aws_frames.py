"""Frames of AWS event streams: read back by a reader of their definition."""

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.wire.aws_frames import event_frame, exception_frame, frame

NAMES = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=40)


def read(data: bytes) -> tuple[dict[str, str], bytes]:
    """Return headers and payload of one frame, by the definition alone."""
    total, length = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    assert total == len(data)
    assert int.from_bytes(data[8:12], "big") == crc32(data[:8])
    assert int.from_bytes(data[-4:], "big") == crc32(data[:-4])
    headers, rest = dict[str, str](), data[12 : 12 + length]
    while rest:
        name, rest = rest[1 : 1 + rest[0]].decode(), rest[1 + rest[0] :]
        assert rest[0] == 7
        size = int.from_bytes(rest[1:3], "big")
        headers[name], rest = rest[3 : 3 + size].decode(), rest[3 + size :]
    return headers, data[12 + length : -4]


@given(st.dictionaries(NAMES, st.text(max_size=200), max_size=5), st.binary(max_size=500))
def test_a_frame_is_read_back_by_its_definition(headers: dict[str, str], payload: bytes) -> None:
    assert read(frame(headers, payload)) == (headers, payload)


def test_events_and_exceptions_say_which_they_are() -> None:
    assert read(event_frame("messageStop", b"{}")) == (
        {
            ":event-type": "messageStop",
            ":content-type": "application/json",
            ":message-type": "event",
        },
        b"{}",
    )
    headers, payload = read(exception_frame("throttlingException", b'{"message":"slow"}'))
    assert headers[":message-type"] == "exception"
    assert headers[":exception-type"] == "throttlingException"
    assert payload == b'{"message":"slow"}'


def test_a_known_frame_has_known_bytes() -> None:
    assert frame({"a": "b"}, b"c").hex() == (
        "00000017" "00000006" + f"{crc32(bytes.fromhex('0000001700000006')):08x}" + "0161" "07" "0001" "62" "63"
        + f"{crc32(frame({'a': 'b'}, b'c')[:-4]):08x}"
    )  # fmt: skip
