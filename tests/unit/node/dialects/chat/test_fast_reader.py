"""The short way of chat bodies says what the long way says, or nothing."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from smg_node.core.errors import SmgError
from smg_node.dialects.chat.fast_reader import KNOWN_MAX, PlainReader
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.options import ReaderOptions
from support.tools.example_counts import example_count

READER = ChatReader(ReaderOptions(messages_max=3))
SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    (
        *(None, True, False, 0, 1, 2, -1, 8, 2**31 - 1, 2**31, 0.0, 0.5, 1.0, 2.0, 2.5),
        *(
            float("nan"),
            float("inf"),
            "",
            "m",
            "x" * 256,
            "x" * 257,
            [],
            {},
            {"include_usage": True},
        ),
    )
)
ROLES = st.sampled_from(
    ("user", "system", "developer", "assistant", "tool", "function", "x", "", 1)
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": ROLES, "content": st.sampled_from(("Hi", "", None, [], 3))},
            optional={"name": st.just("ann")},
        ),
        SCALARS,
        st.just({"role": "user", "content": "Hello"}),
    ),
    max_size=4,
)
OPTIONS: st.SearchStrategy[Any] = st.sampled_from(
    (
        {"include_usage": True},
        {"include_usage": False},
        {"include_usage": 1},
        {"include_usage": True, "x": 1},
        {},
        None,
        [],
    )
)
GOOD = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "model": st.one_of(st.just("m"), SCALARS),
        "messages": st.one_of(MESSAGES, SCALARS),
        "max_tokens": SCALARS,
        "max_completion_tokens": SCALARS,
        "temperature": SCALARS,
        "top_p": SCALARS,
        "stream": st.one_of(st.just(True), SCALARS),
        "stream_options": OPTIONS,
        "n": st.sampled_from((1, 2)),
    },
)


def check(body: dict[str, Any]) -> bool:
    """Compare both ways; return whether the body took the short one."""
    raw = json.dumps(body).encode()
    found = READER.read_plain(raw)
    whole, _ = outcome(body)
    if whole is None:
        assert found is None
    elif found is not None:
        assert found.request == structs.replace(whole.request, alike=True)
        assert found.view == whole.view
        # Equal is not enough: 1 is 1.0 and True, and engines are sent which it is.
        ours, theirs = found.request.sampling, whole.request.sampling
        assert repr(structs.replace(ours, where={})) == repr(structs.replace(theirs, where={}))
        again = READER.read_plain(raw)
        assert again is not None
        assert again.request.sampling is ours
    return found is not None


def outcome(
    body: dict[str, Any],
) -> tuple[ParsedBody[ChatView] | None, tuple[str, str | None] | None]:
    """Return what a body asks for, or with which message and where it is refused."""
    try:
        return READER.read(body), None
    except SmgError as error:
        return None, (error.message, error.where)


@settings(deadline=None, max_examples=example_count(400))
@given(BODIES)
def test_both_ways_say_the_same(body: dict[str, Any]) -> None:
    check(body)
    check({**GOOD, **body})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"max_tokens": 8, "temperature": 0.7, "top_p": 0.9},
        {"max_completion_tokens": 8},
        {"max_completion_tokens": None, "max_tokens": 2, "stream": False},
    ],
)
def test_a_plain_body_takes_the_short_way(more: dict[str, Any]) -> None:
    assert check({**GOOD, **more})


@pytest.mark.parametrize(
    "key", ["n", "tools", "stop", "seed", "user", "logprobs", "response_format"]
)
def test_a_body_with_more_in_it_takes_the_long_way(key: str) -> None:
    assert not check({**GOOD, key: None})


@given(st.binary(max_size=40), st.integers(0, 80))
def test_bytes_that_are_no_body_take_the_long_way(noise: bytes, at: int) -> None:
    raw = json.dumps(GOOD).encode()
    broken = raw[:at] + noise + raw[at + len(noise) :]
    try:
        whole = msgspec.json.decode(broken)
    except (ValueError, RecursionError):
        assert READER.read_plain(broken) is None
    else:
        found = READER.read_plain(broken)
        assert found is None or found.request == structs.replace(
            READER.read(whole).request, alike=True
        )


def test_what_bodies_want_is_kept_within_bounds() -> None:
    reader = PlainReader(messages_max=3, view=ChatView(), with_usage=ChatView())
    for tokens in range(1, 2 * KNOWN_MAX):
        assert reader.read(json.dumps({**GOOD, "max_tokens": tokens}).encode()) is not None
    assert len(reader._known) <= KNOWN_MAX


@pytest.mark.parametrize(
    "spelled", ["1", "-0", "-0.0", "0", "2", "1e0", "3", "-1", "1" + "0" * 400]
)
def test_numbers_are_drawn_with_as_the_long_way_reads_them(spelled: str) -> None:
    reader = ChatReader(ReaderOptions())
    raw = json.dumps({**GOOD, "temperature": 7}).replace("7", spelled).encode()
    found = reader.read_plain(raw)
    try:
        whole = reader.read(msgspec.json.decode(raw))
    except SmgError:
        assert found is None
    else:
        assert found is None or repr(found.request.sampling) == repr(whole.request.sampling)
