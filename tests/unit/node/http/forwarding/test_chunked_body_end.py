"""Where a chunked body ends, wherever it is cut and whatever stands in it."""

from hypothesis import example, given
from hypothesis import strategies as st

from smg_node.http.forwarding.chunked_body_end import ChunkedEnd


def framed(contents: list[bytes], extension: bytes, trailer: bytes) -> bytes:
    chunks = b"".join(b"%X%b\r\n%b\r\n" % (len(one), extension, one) for one in contents)
    return chunks + b"0\r\n" + trailer + b"\r\n"


def passed(data: bytes, step: int) -> ChunkedEnd:
    chunks = ChunkedEnd()
    for at in range(0, len(data), step):
        chunks.count(data[at : at + step])
    return chunks


# What looks like an end, and like sizes, is content here.
contents = st.lists(
    st.binary(min_size=1, max_size=40) | st.sampled_from([b"0\r\n\r\n", b"\r\n", b"5\r\n", b"0"]),
    max_size=5,
)


@given(
    contents,
    st.sampled_from([b"", b";name=1"]),
    st.sampled_from([b"", b"x-sum: 1\r\n"]),
    st.integers(0, 400),
    st.integers(1, 9),
)
@example([b"0\r\n\r\n"], b"", b"", 7, 1)
def test_the_end_is_reached_with_the_last_byte_and_never_before(
    contents: list[bytes], extension: bytes, trailer: bytes, missing: int, step: int
) -> None:
    data = framed(contents, extension, trailer)
    sent = data[: max(0, len(data) - missing)]
    assert passed(sent, step).reached == (missing == 0)


@given(st.binary(max_size=200), st.integers(1, 9))
def test_any_bytes_cut_anywhere_say_the_same(data: bytes, step: int) -> None:
    assert passed(data, step).reached == passed(data, max(1, len(data))).reached


def test_what_is_not_framed_has_no_end() -> None:
    for data in (b"x\r\n0\r\n\r\n", b"-1\r\n0\r\n\r\n", b"1" * 9000 + b"\r\n0\r\n\r\n"):
        assert not passed(data, 100).reached
