"""Answers of origins, put together under a limit."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.media.fetch.answer_body import AnswerBody, BodyError, TooLargeError

BOMB = gzip.compress(bytes(50_000_000))


def body(encoding: str = "", bytes_max: int = 1000) -> tuple[AnswerBody, list[int]]:
    charged: list[int] = []
    return AnswerBody(encoding, bytes_max, charged.append), charged


def test_pieces_become_one_file_and_are_charged() -> None:
    ours, charged = body()
    for piece in (b"ab", b"", b"c"):
        ours.feed(piece)
    assert (ours.finish(), charged) == (b"abc", [2, 1])


def test_it_stops_at_the_limit() -> None:
    ours, charged = body(bytes_max=3)
    ours.feed(b"abc")
    with pytest.raises(TooLargeError):
        ours.feed(b"d")
    assert charged == [3]


def test_what_is_charged_may_be_refused() -> None:
    def refuse(_: int) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        AnswerBody("", 10, refuse).feed(b"a")


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
def test_what_was_compressed_unasked_is_inflated(encoding: str) -> None:
    packed = zlib.compress(b"a picture") if encoding == "deflate" else gzip.compress(b"a picture")
    ours, charged = body(encoding)
    ours.feed(packed[:5])
    ours.feed(packed[5:])
    assert ours.finish() == b"a picture"
    assert sum(charged) == 9


def test_a_bomb_ends_at_the_limit() -> None:
    assert len(BOMB) < 100_000
    ours, charged = body("gzip", 100_000)
    with pytest.raises(TooLargeError):
        ours.feed(BOMB)
    assert sum(charged) == 0


def test_a_file_of_exactly_the_limit_is_taken_inflated() -> None:
    ours, _ = body("gzip", 1000)
    ours.feed(gzip.compress(bytes(1000)))
    assert len(ours.finish()) == 1000


@pytest.mark.parametrize(
    ("encoding", "sent", "words"),
    [
        ("br", None, "an encoding that is not taken"),
        ("gzip, gzip", None, "an encoding that is not taken"),
        ("gzip", b"not gzip", "cannot be inflated"),
        ("gzip", gzip.compress(b"abc", mtime=0)[:-3], "its end is missing"),
        ("gzip", b"", "its end is missing"),
        ("", b"", "it is empty"),
        ("gzip", gzip.compress(b"", mtime=0), "it is empty"),
    ],
)
def test_bodies_that_cannot_be_used(encoding: str, sent: bytes | None, words: str) -> None:
    def read() -> None:
        ours, _ = body(encoding)
        ours.feed(sent or b"")
        ours.finish()

    with pytest.raises(BodyError, match=words):
        read()


@given(st.binary(min_size=1, max_size=300), st.integers(1, 40), st.booleans())
def test_any_cut_gives_the_same_file(content: bytes, cut: int, packed: bool) -> None:
    sent = gzip.compress(content) if packed else content
    ours, charged = body("gzip" if packed else "identity")
    for at in range(0, len(sent), cut):
        ours.feed(sent[at : at + cut])
    assert ours.finish() == content
    assert sum(charged) == len(content)


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]))
def test_garbage_is_refused_and_never_larger_than_the_limit(content: bytes, encoding: str) -> None:
    ours, charged = body(encoding, 100)
    try:
        ours.feed(content)
        assert len(ours.finish()) <= 100
    except (BodyError, TooLargeError):
        assert sum(charged) <= 100
