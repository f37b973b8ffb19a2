"""Answers of workers that speak Chat Completions are read the same however they are cut, and garbage never breaks order."""

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Fail
from support.answers.chat_chunks import (
    DONE,
    blocks,
    call,
    calls,
    chunk,
    failure_of,
    finish_of,
    read,
    used,
)
from support.tools.example_counts import example_count

WORDS = st.text(st.characters(codec="utf-8"), max_size=6)
SAID = st.one_of(
    st.builds(lambda text: chunk(content=text), WORDS),
    st.builds(lambda text: chunk(reasoning_content=text), WORDS),
    st.builds(lambda text: chunk(refusal=text), WORDS),
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def spelled(events: Sequence[bytes], end: bytes) -> bytes:
    return b"".join(event.replace(b"\n", end) for event in events)


@st.composite
def cut(draw: st.DrawFn, whole: bytes) -> list[bytes]:
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    return [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]


@given(st.data(), st.lists(SAID, max_size=8), ENDS)
def test_however_an_answer_is_cut_it_says_the_same(
    data: st.DataObject, said: list[bytes], end: bytes
) -> None:
    weather = calls(call(0, '{"city":"Zürich \\u2028"}', name="weather", call_id="call_1"))
    whole = spelled([*said, weather, chunk("tool_calls"), used(), DONE], end)
    assert read(data.draw(cut(whole))) == read([whole])


def test_every_single_split_of_an_answer_says_the_same() -> None:
    said = [
        chunk(reasoning="é"),
        chunk(content="\n\r"),
        calls(call(0, "{}", name="f")),
        chunk("stop"),
        DONE,
    ]
    for end in (b"\n", b"\r\n", b"\r"):
        whole = spelled(said, end)
        expected = read([whole])
        assert blocks(expected) == ["reasoning é", "text \n\r", "call f({})"]
        for at in range(len(whole) + 1):
            assert read([whole[:at], whole[at:]]) == expected
        assert read([whole[at : at + 1] for at in range(len(whole))]) == expected


@given(st.data(), st.integers(1, 4))
def test_calls_are_told_whole_in_whatever_order_their_pieces_come(
    data: st.DataObject, count: int
) -> None:
    wanted = [json.dumps({"n": number, "s": data.draw(WORDS)}) for number in range(count)]
    queues = [data.draw(cut(text.encode("ascii"))) for text in wanted]
    begun = [False] * count
    events: list[bytes] = []
    while any(queues):
        number = data.draw(st.sampled_from([at for at, queue in enumerate(queues) if queue]))
        piece = queues[number].pop(0).decode()
        named = "" if begun[number] else f"f{number}"
        begun[number] = True
        events.append(calls(call(number, piece, name=named)))
    told = read([*events, chunk("tool_calls"), DONE])
    assert sorted(blocks(told)) == [f"call f{at}({text})" for at, text in enumerate(wanted)]
    assert finish_of(told).reason == "tool_calls"


@given(st.lists(SAID, max_size=4), st.binary(max_size=60), st.data())
@settings(max_examples=example_count(200))
def test_garbage_is_an_error_or_nothing_and_never_out_of_order(
    said: list[bytes], garbage: bytes, data: st.DataObject
) -> None:
    whole = b"".join([*said, b"data: " + garbage + b"\n\n", chunk("stop"), DONE])
    # That the events are in order is checked as they are read.
    read(data.draw(cut(whole)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "index", "content", "tool_calls", "function", "name", "id", "usage",
             "arguments", "finish_reason", "logprobs", "message", "reasoning", "error", "code"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(JSON, max_size=5))
@settings(max_examples=example_count(300))
def test_chunks_of_any_shape_are_an_error_or_understood(values: list[object]) -> None:
    pieces = [b"data: " + json.dumps({"choices": [value]}).encode() + b"\n\n" for value in values]
    pieces += [b"data: " + json.dumps(value).encode() + b"\n\n" for value in values]
    read([*pieces, chunk("stop"), DONE])


@given(st.lists(SAID, min_size=1, max_size=5), st.data())
def test_an_answer_that_is_cut_off_anywhere_before_its_reason_is_not_whole(
    said: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(said)
    told = read([whole[: data.draw(st.integers(0, len(whole)))]])
    assert isinstance(told[-1], Fail)
    assert failure_of(told)
