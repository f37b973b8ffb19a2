"""Server-sent events in the framings of vendors."""

import pytest

from smg_chaos.vendor.wire.sse import crlf_event, data_event, data_first_event, named_event


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [
        (data_event({"a": 1}), b'data: {"a":1}\n\n'),
        (named_event("x.y", {"a": 1}), b'event: x.y\ndata: {"a":1}\n\n'),
        (data_first_event("x.y", {"a": 1}), b'data: {"a":1}\nevent: x.y\n\n'),
        (crlf_event({"a": 1}), b'data: {"a":1}\r\n\r\n'),
    ],
)
def test_an_event_has_these_bytes(written: bytes, bytes_: bytes) -> None:
    assert written == bytes_
