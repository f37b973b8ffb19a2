"""Search in words: what is found, in which order, and that neither depends on anything but the tools."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.generation.tool_serving import ListedTool
from smg_node.mcp.search.bm25 import ToolIndex, build_index
from smg_node.mcp.search.searched_tool import SearchedTool

WEATHER = SearchedTool(
    "get_weather",
    ListedTool("get_weather", "Current weather of a city", {"properties": {"city": {}}}),
    "meteo",
)
MAIL = SearchedTool("sendMail", ListedTool("sendMail", "Sends a message to people"), "office")
CALENDAR = SearchedTool(
    "list_events", ListedTool("list_events", "Appointments in the calendar"), "office"
)
TOOLS = (WEATHER, MAIL, CALENDAR)


def index(*tools: SearchedTool) -> ToolIndex:
    return whole(build_index(tools))


def found(query: str, *tools: SearchedTool, limit: int = 5) -> list[str]:
    return [one.called for one in index(*(tools or TOOLS)).search(query, limit)]


def tool(name: str, description: str = "") -> SearchedTool:
    return SearchedTool(name, ListedTool(name, description))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("weather", ["get_weather"]),
        ("WEATHERS", ["get_weather"]),
        ("mail", ["sendMail"]),
        ("send mail", ["sendMail"]),
        ("SendMail", ["sendMail"]),
        ("appointment", ["list_events"]),
        ("what is the city like", ["get_weather"]),
        ("the", []),
        ("office", ["list_events", "sendMail"]),
        ("meteo", ["get_weather"]),
        ("", []),
        ("   --- ", []),
        ("quantum", []),
    ],
)
def test_a_query_finds_tools_by_all_fields(query: str, names: list[str]) -> None:
    assert sorted(found(query)) == sorted(names)


def test_no_tools_are_found_among_none() -> None:
    assert index().search("weather") == ()
    assert found("weather", tool("", "")) == []


def test_a_word_of_the_name_counts_more_than_one_of_the_description() -> None:
    named, described = tool("archive_it", "all of them"), tool("zip_it", "all of archive")
    assert found("archive", described, named) == ["archive_it", "zip_it"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    tools = [tool(f"t{n}", "reads a file") for n in range(9)]
    assert found("file checksum", *tools, tool("z", "a checksum"))[0] == "z"


def test_equal_scores_are_ordered_by_name() -> None:
    assert found("file", *(tool(name, "a file") for name in "cab")) == ["a", "b", "c"]


def test_at_most_so_many_are_found_the_best_ones() -> None:
    tools = [tool(f"t{n}", "file " * n) for n in range(1, 9)]
    everything = found("file", *tools, limit=100)
    assert len(everything) == 8
    assert found("file", *tools) == everything[:5]
    assert found("file", *tools, limit=1) == everything[:1]


def test_words_that_most_tools_have_find_nothing_beside_rarer_ones() -> None:
    tools = [tool(f"t{n:03}", "returns it") for n in range(100)]
    assert found("returns checksum", *tools, tool("z", "returns the checksum")) == ["z"]
    assert len(found("returns", *tools)) == 5


def test_what_is_too_long_is_cut_and_searched_for_all_the_same() -> None:
    assert found("weather " * 10_000) == ["get_weather"]
    assert found(" ".join(f"w{n}" for n in range(10_000)) + " weather") == []


def test_the_index_is_made_in_steps_of_a_tool_each() -> None:
    steps = build_index(tool(f"t{n}", f"word{n} and more") for n in range(50))
    weights = list(steps)
    assert len(weights) >= 50
    assert max(weights) < 20_000


_WORDS = st.sampled_from(
    ["get", "set", "file", "mail", "user", "city", "read", "write", "list", "note", "page", "row"]
)
_TOOLS = st.lists(
    st.builds(
        lambda name, words: tool("_".join(name), " ".join(words)),
        st.lists(_WORDS, min_size=1, max_size=3),
        st.lists(_WORDS, max_size=8),
    ),
    max_size=20,
)
_QUERIES = st.lists(_WORDS, min_size=1, max_size=4).map(" ".join)


@given(_TOOLS, _QUERIES, st.randoms(use_true_random=False))
def test_the_order_of_tools_does_not_matter(
    tools: list[SearchedTool], query: str, rng: random.Random
) -> None:
    mixed = list(tools)
    rng.shuffle(mixed)
    assert found(query, *mixed, tool("x")) == found(query, *tools, tool("x"))


@given(_TOOLS, _QUERIES)
def test_what_is_found_has_a_word_of_the_query(tools: list[SearchedTool], query: str) -> None:
    for one in index(*tools).search(query):
        text = f"{one.called.replace('_', ' ')} {one.tool.description}".split()
        assert set(query.split()) & set(text)


@given(_TOOLS, _WORDS, st.integers(1, 20))
def test_tools_that_have_nothing_to_do_with_it_change_nothing_but_weights(
    tools: list[SearchedTool], word: str, others: int
) -> None:
    irrelevant = [tool(f"zebra{n}", "stripes") for n in range(others)]
    before = {one.called for one in index(*tools).search(word, 100)}
    after = {one.called for one in index(*tools, *irrelevant).search(word, 100)}
    assert before == after


@given(st.integers(1, 8), st.integers(0, 30))
def test_texts_of_the_same_length_keep_their_order_whatever_is_added(
    tools: int, others: int
) -> None:
    ranked = [tool(f"t{n}", "file " * n + "row " * (10 - n)) for n in range(1, tools + 1)]
    irrelevant = [tool(f"zebra{n}", "stripes " * n) for n in range(others)]
    assert found("file", *ranked, *irrelevant, limit=100) == found("file", *ranked, limit=100)


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=60))
def test_any_text_can_be_looked_for_in_any_text(texts: list[str], query: str) -> None:
    tools = [tool(text, text) for text in texts]
    assert len(index(*tools).search(query)) <= 5
