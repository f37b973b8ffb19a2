"""Line reader: any cut of a process's output gives the same messages, and noise has an end."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.wire.line_reader import NOISE_MAX, LineReader
from smg_node.mcp.wire.messages import Notice

OUTPUT = (
    b'Starting server...\n\n{"method":"a"}\r\n{"method":"b"}\nwarning: x\n[{"method":"c"}]\nrest'
)


def read(pieces: list[bytes], most: int = 1000) -> tuple[list[str], list[bytes], str]:
    reader = LineReader(most)
    messages: list[str] = []
    noise: list[bytes] = []
    dead = ""
    for piece in pieces:
        told = reader.feed(piece)
        messages += [one.method for one in told.messages if isinstance(one, Notice)]
        noise += told.noise
        dead = told.dead
    return messages, noise, dead


WHOLE = (["a", "b", "c"], [b"Starting server...", b"warning: x"], "")


@given(st.lists(st.integers(0, len(OUTPUT)), max_size=10))
def test_any_cut_gives_the_same_lines(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(OUTPUT)]
    pieces = [OUTPUT[start:end] for start, end in itertools.pairwise(places)]
    assert read(pieces) == WHOLE


def test_a_message_between_keeps_noise_from_being_too_much() -> None:
    noise = b"x\n" * (NOISE_MAX - 1)
    assert read([noise, b'{"method":"a"}\n', noise])[2] == ""
    assert read([noise, b"x\n", b'{"method":"a"}\n'])[0] == []
    assert "no messages" in read([noise, b"x\n"])[2]


def test_a_line_above_the_limit_ends_it_whole_or_not() -> None:
    assert "more than 10 bytes" in read([b"x" * 11], 10)[2]
    assert "more than 10 bytes" in read([b'{"method":"aaaaaaaa"}\n'], 10)[2]
    assert read([b'{"method":"a"}\n'], 14)[0] == ["a"]


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_any_bytes_are_lines(pieces: list[bytes]) -> None:
    assert read(pieces) == read([b"".join(pieces)])
