"""The short way reads a plain body as the long way does, and leaves any other to it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

READER = MessagesReader(ReaderOptions(), ThoughtSeals(PlainVault()))
HI = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "ho"}
PLAIN: dict[str, Any] = {"model": "m", "max_tokens": 5, "messages": [HI]}

ODD: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": ""},
    {"role": "user", "content": " "},
    {"role": "user", "content": [{"type": "text", "text": "x"}]},
    {"role": "user"},
    {"role": "system", "content": "s"},
    {"role": "assistant", "content": ""},
    {**HI, "name": "n"},
)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["m", "", 5, "x" * 257]),
    "max_tokens": st.sampled_from([1, 0, -1, 5.0, 5.5, None, 2**31, 2**40, "5"]),
    "messages": st.lists(
        st.sampled_from(
            [HI, SAID, *ODD]
        ),
        max_size=5,
    ),
    "system": st.sampled_from(["", "s", " ", None, 5, "x-anthropic-billing-header: x", []]),
    "temperature": st.sampled_from([0, 0.5, 1, 2, 2.5, -0.0, None, "x"]),
    "top_p": st.sampled_from([0, 0.5, 1, 1.5, None]),
    "stream": st.sampled_from([True, False, None, 1]),
    "metadata": st.just({}),
    "x": st.just(1),
}  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    body = dict(PLAIN)
    for key in draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True)):
        body[key] = draw(VALUES[key])
    return body


@given(bodies())
def test_both_ways_read_the_same(body: dict[str, Any]) -> None:
    quick = READER.read_plain(json.dumps(body).encode())
    if quick is None:
        return
    long = READER.read(body)
    assert quick.view == long.view
    request, other = quick.request, long.request
    assert (request.model, request.stream, request.ignored) == (other.model, other.stream, ())
    assert (request.prompts, request.sampling) == (other.prompts, other.sampling)
    assert request.routing_key is None
    assert request.alike


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stream": True},
        {"system": "Be brief.", "temperature": 0.5, "top_p": 1},
        {"messages": [HI, SAID, HI]},
    ],
)
def test_a_plain_body_takes_the_short_way(more: dict[str, Any]) -> None:
    assert READER.read_plain(json.dumps({**PLAIN, **more}).encode()) is not None


@pytest.mark.parametrize(
    "more",
    [
        {"max_tokens": 0},
        {"messages": [HI, HI]},
        {"messages": [HI, SAID]},
        {"messages": [SAID]},
        {"system": [{"type": "text", "text": "x"}]},
        {"system": "x-anthropic-billing-header: x"},
        {"top_k": 5},
        {"metadata": {"user_id": "u"}},
        {"temperature": -1},
    ],
)
def test_any_other_is_left_to_the_long_way(more: dict[str, Any]) -> None:
    assert READER.read_plain(json.dumps({**PLAIN, **more}).encode()) is None


def test_like_requests_share_what_is_derived_from_their_wishes() -> None:
    one, other = (READER.read_plain(json.dumps(PLAIN).encode()) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.request.sampling is other.request.sampling
    assert one.view is other.view
    assert READER.read_plain(b"{") is None
    assert READER.read_plain(b"\xff") is None


def test_a_line_about_billing_stays_where_the_operator_wants_it() -> None:
    reader = MessagesReader(ReaderOptions(drop_billing_block=False), ThoughtSeals(PlainVault()))
    line = "x-anthropic-billing-header: x"
    quick = reader.read_plain(json.dumps({**PLAIN, "system": line}).encode())
    assert quick is not None
    long = reader.read({**PLAIN, "system": [{"type": "text", "text": line}]})
    assert quick.request.prompts == long.request.prompts
    assert quick.request.prompts[0].turns[0].content == line  # type: ignore[union-attr]  # a chat


def test_a_body_that_only_the_long_way_refuses_is_not_plain() -> None:
    for body in ({}, {"model": "m"}, {**PLAIN, "messages": "x"}):
        assert READER.read_plain(json.dumps(body).encode()) is None
        with pytest.raises(SmgError):
            READER.read(dict(body))
