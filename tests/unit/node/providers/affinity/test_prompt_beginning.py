"""The chain of a prompt: equal beginnings have equal hashes, whatever marks stand in them; marks are found exactly."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.providers.affinity.prompt_beginning import (
    BLOCK_BYTES,
    MARK_WORDS,
    PromptBeginning,
    beginning_of,
)

MESSAGES = ("tools", "system", "messages")
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def read(order: tuple[str, ...] = MESSAGES, /, **fields: Any) -> PromptBeginning:
    raw = msgspec.json.encode(fields)
    return beginning_of(order, fields, marked=any(word in raw for word in MARK_WORDS))


def turns(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": "user" if at % 2 == 0 else "assistant", "content": text}
        for at, text in enumerate(texts)
    ]


def test_a_later_turn_begins_with_all_whole_blocks_of_the_one_before() -> None:
    first = read(system="s" * 900, messages=turns("a" * 700))
    later = read(system="s" * 900, messages=turns("a" * 700, "b" * 50, "c" * 900))
    assert len(first.hashes) == first.size_bytes // BLOCK_BYTES
    assert later.hashes[: len(first.hashes)] == first.hashes
    assert later.ends[: len(first.ends)] == first.ends


def test_one_byte_in_front_changes_every_hash_behind_it() -> None:
    one = read(system="s" * 900, messages=turns("a" * 2_000))
    other = read(system="s" * 899 + "t", messages=turns("a" * 2_000))
    assert one.hashes[:3] == other.hashes[:3]
    assert not set(one.hashes[3:]) & set(other.hashes[3:])


@given(
    texts=st.lists(st.text(max_size=400), min_size=1, max_size=6),
    marked=st.integers(0, 5),
    top=st.booleans(),
)
def test_marks_change_no_hash_and_a_text_is_a_list_of_one(
    texts: list[str], marked: int, top: bool
) -> None:
    plain = read(messages=turns(*texts))
    at = marked % len(texts)
    rows = turns(*texts)
    rows[at] = {**rows[at], "content": [{"type": "text", "text": texts[at], **MARK}]}
    found = read(messages=rows, **(MARK if top else {}))
    assert found.hashes == plain.hashes
    assert found.ends == plain.ends
    assert found.marks[0].piece == at
    assert found.marks[-1].piece == (len(texts) - 1 if top else at)


def test_marks_stand_at_the_exact_end_of_their_piece_with_their_life() -> None:
    found = read(
        tools=[{"name": "f", "input_schema": {}}, {"name": "g", "input_schema": {}, **HOUR}],
        system=[{"type": "text", "text": "s" * 300, **MARK}],
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "one"},
                    {"type": "text", "text": "two", **MARK},
                ],
            }
        ],
    )
    assert [(one.piece, one.life_ms) for one in found.marks] == [
        (1, 3_600_000),
        (2, 300_000),
        (4, 300_000),
    ]
    assert len(found.ends) == 5


def test_a_mark_in_a_result_of_a_call_and_a_cache_point_mark_what_stands_before_them() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "text", "text": "r", **MARK}],
    }
    inner = read(messages=[{"role": "user", "content": [result]}])
    assert [one.piece for one in inner.marks] == [0]
    point = read(
        messages=[{"role": "user", "content": [{"text": "x"}, {"cachePoint": {"type": "default"}}]}]
    )
    assert [one.piece for one in point.marks] == [0]
    assert point.ends == read(messages=[{"role": "user", "content": [{"text": "x"}]}]).ends


def test_the_word_of_a_mark_in_a_text_marks_nothing() -> None:
    assert read(messages=turns('{"cache_control": {"type": "ephemeral"}}')).marks == ()


def test_two_marks_on_one_piece_are_one_and_a_mark_on_nothing_is_none() -> None:
    twice = read(
        messages=[{"role": "user", "content": [{"type": "text", "text": "x", **MARK}]}], **HOUR
    )
    assert [one.life_ms for one in twice.marks] == [3_600_000]
    assert read(messages=[], **MARK).marks == ()


def test_the_order_of_keys_changes_nothing_and_that_of_fields_is_the_vendors() -> None:
    one = read(messages=turns("a" * 600), system="s" * 300)
    other = read(system="s" * 300, messages=[{"content": "a" * 600, "role": "user"}])
    assert one == other


def test_stops_are_the_end_of_the_head_marks_and_the_end() -> None:
    found = read(
        system="s" * 1_000,
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a" * 1_000, **MARK}]},
            *turns("b" * 1_000),
        ],
    )
    assert found.stops == (4, 8, 12)
    assert read(messages=turns("short")).stops == ()


@pytest.mark.parametrize(
    ("fields", "life_ms", "explicit"),
    [
        ({}, 0, False),
        ({"prompt_cache_retention": "24h"}, 86_400_000, False),
        ({"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}}, 1_800_000, True),
        ({"prompt_cache_options": "no object", "prompt_cache_retention": 7}, 0, False),
    ],
)
def test_a_client_of_openai_says_how_long_and_what(
    fields: dict[str, Any], life_ms: int, explicit: bool
) -> None:
    found = read(("tools", "messages"), messages=turns("x"), **fields)
    assert (found.life_ms, found.explicit) == (life_ms, explicit)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["content", "role", "text", "cache_control", "cachePoint", "parts"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_values_of_json_have_a_chain(value: Any) -> None:
    found = beginning_of(MESSAGES, {"messages": value, "system": value}, marked=True)
    assert all(0 <= one.piece < len(found.ends) for one in found.marks)
    assert [end.size_bytes for end in found.ends] == sorted(end.size_bytes for end in found.ends)
