"""Results of built-in tools: what models are shown, and what APIs are."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import BuiltinKind, RunError, RunResult, Source
from smg_node.mcp.builtin.builtin_result import numbered, read_builtin
from smg_node.mcp.failures import Failure, FailureKind, lost, refused
from smg_node.mcp.tools.tool_result import CallResult

PAGES = [
    {"url": "https://a.org/1", "title": "First", "snippet": "about one"},
    {"url": "https://b.org/2", "title": "Second", "snippet": "about two"},
]
PNG = base64.b64encode(b"x" * 2_000).decode()


def found(value: Any = PAGES, settings: Any = None, *, first: int = 1, **kind: Any) -> RunResult:
    result = CallResult((), json.dumps(value).encode())
    name: BuiltinKind = kind.get("kind", "web_search")
    return read_builtin(
        name, settings or {}, '{"query": "x", "queries": ["x"]}', result, first=first
    )


def test_a_search_is_shown_by_numbers() -> None:
    result = found()
    assert result.text == (
        "[1] First https://a.org/1\nabout one\n\n[2] Second https://b.org/2\nabout two"
    )
    assert [source.url for source in result.sources] == ["https://a.org/1", "https://b.org/2"]
    assert result.action == {"query": "x"}
    assert result.error is None


def test_numbers_go_on_from_the_search_before() -> None:
    assert found(first=7).text.startswith("[7] First https://a.org/1\n")
    assert "\n[8] Second" in found(first=7).text


def test_nothing_was_found() -> None:
    assert found([]) == RunResult("Nothing was found.", action={"query": "x"})


def test_an_answer_stands_before_what_it_rests_on() -> None:
    assert found({"answer": "Both.", "results": PAGES}).text.startswith("Both.\n\n[1] First")


@pytest.mark.parametrize(
    "settings",
    [
        {"filters": {"allowed_domains": ["a.org"]}},
        {"allowed_domains": ["a.org"]},
        {"blocked_domains": ["b.org"]},
    ],
)
def test_other_domains_are_left_out(settings: Any) -> None:
    result = found({"answer": "Both.", "results": PAGES}, settings)
    assert result.text == (
        "[1] First https://a.org/1\nabout one\n\n[1 left out: not what was asked for]"
    )
    assert [source.url for source in result.sources] == ["https://a.org/1"]


def test_nothing_of_these_domains_was_found() -> None:
    result = found(PAGES, {"allowed_domains": ["c.org"]})
    assert result.text == "Nothing was found.\n\n[2 left out: not what was asked for]"
    assert result.sources == ()


def test_a_text_is_passed_on_without_sources() -> None:
    content = ({"type": "text", "text": "One and two, says https://b.org"},)
    result = read_builtin("web_search", {}, '{"query": "x"}', CallResult(content))
    assert result == RunResult(content[0]["text"], content=content, action={"query": "x"})


def test_lines_for_a_reader_have_sources_where_any_domain_may_be_shown() -> None:
    content = ({"type": "text", "text": "Title: First\nURL: https://a.org/1\nContent: about one"},)
    result = read_builtin("web_search", {}, '{"query": "x"}', CallResult(content))
    assert result.text == "[1] First https://a.org/1\nabout one"
    settings = {"allowed_domains": ["a.org"]}
    result = read_builtin("web_search", settings, '{"query": "x"}', CallResult(content))
    assert result.error is not None


def test_a_text_is_not_passed_on_where_only_some_domains_may_be_shown() -> None:
    content = ({"type": "text", "text": "One and two, says https://b.org"},)
    settings = {"blocked_domains": ["b.org"]}
    result = read_builtin("web_search", settings, '{"query": "x"}', CallResult(content))
    assert "b.org" not in result.text
    assert result.text.startswith("tool failed: the results are in no form that shows")
    assert result.error is not None
    assert not result.content
    assert not result.sources


def test_the_size_of_the_context_bounds_what_is_shown() -> None:
    pages = [{"url": f"https://a.org/{n}", "title": "T", "text": "word " * 4_000} for n in range(9)]
    pages.append({"url": "https://a.org/short", "title": "T", "text": "a short one"})
    low = found(pages, {"search_context_size": "low"})
    assert 7_000 < len(low.text) <= 8_192
    assert low.text.endswith("a short one")
    assert len(low.sources) == 10
    high = found(pages, {"search_context_size": "high"})
    assert 100_000 < len(high.text) <= 131_072
    assert len(found(pages).text) > 131_072


def test_what_has_no_room_is_no_source_either() -> None:
    pages = [{"url": f"https://a.org/{n}/" + "a" * 1_000, "text": "t"} for n in range(50)]
    low = found(pages, {"search_context_size": "low"})
    assert len(low.text) <= 8_192
    assert f"[{len(low.sources)}] " in low.text
    assert f"[{len(low.sources) + 1}] " not in low.text


def test_files_are_so_many_and_so_good() -> None:
    files = [
        {"file_id": f"f{n}", "filename": f"{n}.txt", "score": 1 - n / 40, "text": "t"}
        for n in range(40)
    ]
    assert len(found(files, kind="file_search").sources) == 20
    assert found(files, kind="file_search").text.startswith("[1] 0.txt\nt\n\n[2] 1.txt\nt")
    few = found(files, {"max_num_results": 3}, kind="file_search")
    assert [source.file_id for source in few.sources] == ["f0", "f1", "f2"]
    assert few.action == {"queries": ["x"]}
    settings = {"ranking_options": {"score_threshold": 0.95}}
    good = found(files, settings, kind="file_search")
    assert [source.score for source in good.sources] == [1, 0.975, 0.95]
    assert "37 left out" in good.text


@pytest.mark.parametrize("kind", ["web_search", "file_search", "code_interpreter", "tool_search"])
def test_a_failure_is_shown_by_the_table_of_errors(kind: BuiltinKind) -> None:
    result = read_builtin(kind, {}, "{}", lost("the connection broke", sent=True))
    assert result.text == "tool failed: the connection broke"
    assert result.error == RunError("http_error", 502, "the connection broke")
    result = read_builtin(kind, {}, "{}", refused("a person said no"))
    assert result.text == "not run: a person said no"
    assert result.error == RunError("mcp_protocol_error", -32001, "a person said no")


@pytest.mark.parametrize("kind", ["web_search", "image_generation"])
def test_a_tool_that_failed_says_why(kind: BuiltinKind) -> None:
    content = ({"type": "text", "text": "no more credit"},)
    result = read_builtin(kind, {}, "{}", CallResult(content, is_error=True))
    assert result.text == "no more credit"
    assert result.error == RunError("mcp_tool_execution_error", content=content)


def test_code_that_raised_has_printed_something() -> None:
    content = ({"type": "text", "text": "ZeroDivisionError"},)
    arguments = '{"code": "1/0"}'
    result = read_builtin("code_interpreter", {}, arguments, CallResult(content, is_error=True))
    assert result.text == "ZeroDivisionError"
    assert result.outputs == ({"type": "logs", "logs": "ZeroDivisionError"},)
    assert result.error == RunError("mcp_tool_execution_error", content=content)
    assert result.action == {"code": "1/0"}


def test_code_that_drew_and_code_that_did_nothing() -> None:
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    result = read_builtin(
        "code_interpreter", {}, "{}", CallResult(({"type": "text", "text": "4"}, image))
    )
    assert result.text == "4\n[image/png, 2 kB]"
    assert len(result.outputs) == 2
    assert read_builtin("code_interpreter", {}, "{}", CallResult()).text == "Nothing was printed."


def test_a_picture_is_made() -> None:
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    arguments = '{"prompt": "a cat"}'
    result = read_builtin("image_generation", {}, arguments, CallResult((image,)))
    assert result.text == "Made, and shown to the user: [image/png, 2 kB]"
    assert result.outputs == ({"type": "image", "url": f"data:image/png;base64,{PNG}"},)
    none = read_builtin("image_generation", {}, arguments, CallResult())
    assert none.text == "tool failed: the server's answer has no picture"


def test_of_a_picture_elsewhere_a_model_is_shown_the_address() -> None:
    told = read_builtin(
        "image_generation", {}, "{}", CallResult(structured=b'{"url":"https://a.org/cat.png"}')
    )
    assert told.text == (
        "Made, and not shown yet: tell the user its address: [https://a.org/cat.png]"
    )


def test_a_result_of_another_kind_is_a_text() -> None:
    content = ({"type": "text", "text": "t"},)
    assert read_builtin("tool_search", {}, '{"query": "x"}', CallResult(content)) == RunResult(
        "t", content=content, action={"query": "x"}
    )


_SOURCES = st.builds(
    Source,
    url=st.sampled_from(["", "https://a.org"]),
    title=st.text(max_size=10),
    text=st.text(max_size=300),
)


@given(st.lists(_SOURCES, min_size=1, max_size=8), st.integers(0, 1_500), st.integers(1, 20))
def test_what_is_shown_has_room(sources: list[Source], room: int, first: int) -> None:
    shown = numbered(sources, first=first, bytes_max=room)
    heads = numbered([Source(url=s.url, title=s.title) for s in sources], first=first, bytes_max=0)
    assert len(shown.encode()) <= max(room, len(heads.encode()))
    assert all(f"[{first + place}]" in shown for place in range(len(sources)))


@given(
    st.sampled_from(["web_search", "file_search", "code_interpreter", "image_generation"]),
    st.binary(max_size=60),
    st.lists(
        st.dictionaries(st.sampled_from(["type", "text", "data", "uri"]), st.text()), max_size=3
    ),
    st.text(max_size=20),
)
def test_any_answer_of_a_server_has_a_result(
    kind: Any, some: bytes, content: list[dict[str, Any]], arguments: str
) -> None:
    result = read_builtin(kind, {}, arguments, CallResult(tuple(content), some))
    assert isinstance(result.text, str)
    assert len(result.text) < 300_000


def test_a_status_alone_keeps_its_code() -> None:
    failure = Failure(FailureKind.HTTP, 403, "the server answered 403 Forbidden", status=403)
    result = read_builtin("web_search", {}, "{}", failure)
    assert result.error == RunError("http_error", 403, "the server answered 403 Forbidden")
