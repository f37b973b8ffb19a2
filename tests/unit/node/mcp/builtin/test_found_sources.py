"""Sources in results of searches: whatever names a server has for them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import BuiltinKind, Source
from smg_node.mcp.builtin.found_sources import SOURCES_MAX, answer_in, sources_in
from smg_node.mcp.tools.tool_result import CallResult

A = Source(url="https://a.org/1", title="A", text="about a")


def structured(value: Any, kind: BuiltinKind = "web_search") -> list[Source] | None:
    return sources_in(CallResult((), json.dumps(value).encode()), kind)


def texts(*values: str, kind: BuiltinKind = "web_search") -> list[Source] | None:
    return sources_in(CallResult(tuple({"type": "text", "text": one} for one in values)), kind)


@pytest.mark.parametrize(
    "item",
    [
        {"url": "https://a.org/1", "title": "A", "text": "about a"},
        {"link": "https://a.org/1", "title": "A", "snippet": "about a"},
        {"uri": "https://a.org/1", "name": "A", "content": "about a"},
        {"href": "https://a.org/1", "title": "A", "body": "about a"},
        {"url": "https://a.org/1", "title": " A\n", "description": "about a\n"},
        {"metadata": {"source": "https://a.org/1", "title": "A"}, "page_content": "about a"},
        {"_source": {"url": "https://a.org/1", "title": "A", "text": "about a"}},
        {"url": "https://a.org/1", "title": "A", "content": [{"type": "text", "text": "about a"}]},
        {"url": "https://a.org/1", "title": "A", "highlights": ["about a"]},
    ],
)
def test_a_source_by_any_name(item: Any) -> None:
    assert structured([item]) == [A]


@pytest.mark.parametrize(
    "around",
    [
        lambda items: items,
        lambda items: {"results": items},
        lambda items: {"items": items},
        lambda items: {"documents": items},
        lambda items: {"hits": items},
        lambda items: {"hits": {"total": 1, "hits": items}},
        lambda items: {"result": items},
        lambda items: {"query": {"original": "x"}, "web": {"results": items}},
        lambda items: {"webPages": {"value": items}},
        lambda items: {"organic": items, "credits": 1},
        lambda items: [items],
    ],
)
def test_a_list_by_any_name(around: Any) -> None:
    item = {"url": "https://a.org/1", "title": "A", "text": "about a"}
    assert structured(around([item])) == [A]
    assert texts(json.dumps(around([item]))) == [A]
    assert structured(around([])) in ([], None)


def test_a_list_with_nothing_in_it_is_one() -> None:
    assert structured([]) == structured({"results": []}) == []


def test_one_block_for_each_thing() -> None:
    item = json.dumps({"url": "https://a.org/1", "title": "A", "text": "about a"})
    assert texts(item, item) == [A, A]
    assert texts(item, "and more") is None


def test_links_to_resources_are_sources() -> None:
    link = {
        "type": "resource_link",
        "uri": "https://a.org/1",
        "name": "A",
        "description": "about a",
    }
    inside = {"type": "resource", "resource": {"uri": "https://b.org", "text": "about b"}}
    note = {"type": "text", "text": "two were found"}
    assert sources_in(CallResult((note, link, inside)), "web_search") == [
        A,
        Source(url="https://b.org", text="about b"),
    ]


def test_addresses_and_texts_alone() -> None:
    assert structured(["https://a.org", "some text"]) == [
        Source(url="https://a.org"),
        Source(text="some text"),
    ]
    assert structured({"documents": [["one", "two"]]}) == [Source(text="one"), Source(text="two")]


def test_files_have_names_ids_and_scores() -> None:
    found = {
        "data": [
            {
                "file_id": "file_1",
                "filename": "plan.pdf",
                "score": 0.75,
                "attributes": {"year": 2026},
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            {"id": "file_2", "name": "b.txt", "uri": "file:///b.txt", "score": 17},
        ]
    }
    assert structured(found, "file_search") == [
        Source(title="plan.pdf", text="a\nb", score=0.75, file_id="file_1"),
        Source(url="file:///b.txt", title="b.txt", file_id="file_2"),
    ]
    # On the web an address of a file is none, and an id is no file's.
    assert structured(found) == [
        Source(title="plan.pdf", text="a\nb", score=0.75),
        Source(title="b.txt"),
    ]


def test_the_age_and_the_score_of_a_page() -> None:
    (found,) = (
        structured([{"url": "https://a.org", "published_date": "2026-11-01", "score": 1}]) or []
    )
    assert (found.age, found.score) == ("2026-11-01", 1.0)


@pytest.mark.parametrize("score", [True, -0.1, 1.5, "0.5", None, [0.5]])
def test_a_score_that_is_none(score: Any) -> None:
    (found,) = structured([{"url": "https://a.org", "score": score}]) or []
    assert found.score is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "text",
        {},
        {"status": "ok"},
        {"results": "none"},
        [3, None],
        {"results": [{}]},
        [[[]]],
    ],
)
def test_what_has_no_sources_is_not_read(value: Any) -> None:
    assert structured(value) is None
    assert texts(json.dumps(value)) is None


def test_a_text_is_not_read() -> None:
    assert texts("There is much about it.") is None
    assert texts('{"results": [') is None
    assert texts("[" * 100_000) is None
    assert sources_in(CallResult(), "web_search") is None


def test_what_is_too_large_to_be_read_at_once_is_not() -> None:
    assert structured([{"text": "x" * (3 << 20)}]) is None


def test_everything_is_bounded_and_without_control_characters() -> None:
    item = {
        "title": "t\x00\u202e" * 5_000,
        "text": "x" * 100_000,
        "url": "https://a.org/" + "a" * 9_000,
    }
    (found,) = structured([item]) or []
    assert len(found.title) <= 300
    assert found.title.startswith("t t")
    assert len(found.text) == 65_536
    assert found.url == ""
    assert len(structured([{"text": "x"}] * 1_000) or []) == SOURCES_MAX


def test_the_answer_beside_the_sources() -> None:
    value = json.dumps({"answer": " It is 4. ", "results": []})
    assert answer_in(CallResult((), value.encode())) == "It is 4."
    assert answer_in(CallResult(({"type": "text", "text": value},))) == "It is 4."
    assert answer_in(CallResult(({"type": "text", "text": "4"},), b'{"answer": 4}')) == ""


_NAMES = st.sampled_from(
    ["results", "hits", "url", "title", "text", "content", "metadata", "score"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.just("https://a.org"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=15,
)


@given(_VALUES)
def test_any_json_is_read_or_not(value: Any) -> None:
    found = structured(value)
    assert found is None or all(one.url or one.title or one.text for one in found)


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda some: b"[" + some))
def test_any_bytes_are_read_or_not(some: bytes) -> None:
    found = sources_in(CallResult((), some), "file_search")
    assert found is None or len(found) <= SOURCES_MAX
