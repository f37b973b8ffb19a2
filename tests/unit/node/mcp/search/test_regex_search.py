"""Search by pattern: what matches, what is refused in words, and that none takes the node's time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.generation.tool_serving import ListedTool
from smg_node.mcp.search.regex_search import SearchRefusal, ToolTexts, build_texts
from smg_node.mcp.search.searched_tool import SearchedTool

SCHEMA = {"properties": {"city": {"description": "Name of a place"}}}
TOOLS = (
    SearchedTool("get_weather", ListedTool("get_weather", "Weather now", SCHEMA), "meteo"),
    SearchedTool("send_mail", ListedTool("send_mail", "Tells people of the\nweather"), "office"),
    SearchedTool("office__now", ListedTool("now", "The time"), "office"),
    SearchedTool("WeatherMap", ListedTool("WeatherMap", "A picture")),
)
TEXTS = whole(build_texts(TOOLS))


def found(pattern: str, limit: int = 5, texts: ToolTexts = TEXTS) -> list[str]:
    result = texts.search(pattern, limit)
    assert not isinstance(result, SearchRefusal), result
    return [one.called for one in result]


def refusal(pattern: str) -> str:
    result = TEXTS.search(pattern)
    assert isinstance(result, SearchRefusal)
    assert result.code == "invalid_tool_input"
    return result.message


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("weather", ["WeatherMap", "get_weather", "send_mail"]),
        ("(?i)WEATHER", ["WeatherMap", "get_weather", "send_mail"]),
        ("(?-i)Weather", ["WeatherMap", "get_weather"]),
        ("^get_", ["get_weather"]),
        ("_mail$", ["send_mail"]),
        (r"_mail\Z", ["send_mail"]),
        (r"\\Z", []),
        ("get_.*|.*map", ["WeatherMap", "get_weather"]),
        ("office", ["office__now", "send_mail"]),
        ("name of a (place|town)", ["get_weather"]),
        ("(?P<unit>time)", ["office__now"]),
        ("meteo", ["get_weather"]),
        ("quantum", []),
        ("people.*weather", []),
        ("(?s)people.*weather", ["send_mail"]),
    ],
)
def test_a_pattern_finds_tools_by_all_fields(pattern: str, names: list[str]) -> None:
    assert found(pattern) == names


def test_at_most_so_many_are_found_names_first() -> None:
    assert found("weather", 1) == ["WeatherMap"]
    assert found("e", 2) == ["WeatherMap", "get_weather"]
    assert found(".", 100) == ["WeatherMap", "get_weather", "office__now", "send_mail"]
    assert found("x", texts=whole(build_texts(()))) == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "the pattern is empty"),
        (" \n", "the pattern is empty"),
        ("x" * 257, "the pattern has more than 256 characters"),
        ("(", "the pattern cannot be read: unclosed group"),
        ("[a", "the pattern cannot be read: unclosed character class"),
        ("*", "the pattern cannot be read: repetition operator missing expression"),
        (
            "(?=a)",
            "the pattern cannot be read: look-around, including look-ahead and look-behind,"
            " is not supported",
        ),
        (r"(a)\1", "the pattern cannot be read: backreferences are not supported"),
    ],
)
def test_what_is_no_pattern_is_refused_in_words(pattern: str, why: str) -> None:
    assert refusal(pattern) == why


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w{1000}",
        r"(?:\w{30}){30}",
        r"(((x{99}){99}){99}){99}",
        r"x{999999999}",
        r"x{99}{99}{99}",
        "(" * 60 + ")" * 60,
        r"[\w-]{500}",
        r"[[:alpha:]]{500}",
        r"\w{400,}",
        r"\p{L}*{20}{50}",
        r"\pL{50}",
        "[a-z]*{100}+.{100}{5}",
        "(a|b{5}){100}",
    ],
)
def test_what_takes_long_to_compile_is_refused_before(pattern: str) -> None:
    assert refusal(pattern).startswith("the pattern repeats or nests too much")


def test_patterns_that_hang_other_engines_are_done_at_once() -> None:
    tools = whole(build_texts([SearchedTool("a" * 60, ListedTool("a" * 60, "a" * 8_000))]))
    began_s = time.process_time()
    for pattern in (r"(a+)+$", r"(a|a)*b", r"(a*)*b", r"(.*.*.*)*=", r"([a-z]+)*\d"):
        assert not isinstance(tools.search(pattern), SearchRefusal)
    assert time.process_time() - began_s < 5  # `re` needs longer than anybody waits


def test_a_search_ends_when_its_time_is_over() -> None:
    left = iter([False, False, True])
    result = TEXTS.search("quantum", expired=lambda: next(left))
    assert result == SearchRefusal("execution_time_exceeded", "the pattern takes too long")


def test_texts_are_collected_in_steps_of_a_tool_each() -> None:
    assert len(list(build_texts(TOOLS))) == len(TOOLS)


_PIECES = st.sampled_from([*r"ab.*+?|()[]{}^$\wdsSbBZpPLx0123,-:=!<>&", "(?", "é", "言"])


@settings(max_examples=300)
@given(st.lists(_PIECES, max_size=40).map("".join) | st.text(max_size=300))
def test_any_pattern_gives_tools_or_a_refusal(pattern: str) -> None:
    result = TEXTS.search(pattern)
    if isinstance(result, SearchRefusal):
        assert result.message
        assert len(result.message) < 300
    else:
        assert len(result) <= 5
