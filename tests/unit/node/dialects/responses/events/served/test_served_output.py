"""Runs of tools of ours as a response shows them: every event and item what the SDK calls one, several open at once."""

import gc
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response

from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Listed,
    RunEnd,
    RunStart,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.presenter import ResponsePresenter
from smg_node.dialects.responses.items.item_document import item_of
from support.answers.generations import BEGIN, BROKEN, merged, text, types, whole
from support.answers.responses import ask_of, checked, decoded, items_from, teller_of, told_whole
from support.answers.served_streams import (
    ERRORS,
    RESULT,
    SHAPES,
    TIMES,
    owned,
    run,
    served_streams,
)

INCLUDE = [
    "web_search_call.action.sources",
    "web_search_call.results",
    "file_search_call.results",
    "code_interpreter_call.outputs",
]
Row = dict[str, Any]


def items(response: Response) -> list[Row]:
    return [json.loads(item.model_dump_json()) for item in response.output]


def told_of(owner: ToolOwner, result: RunResult = RESULT, **more: Any) -> tuple[list[str], Row]:
    """Return the types of a call's events, and its item."""
    told = told_whole(whole(owned(owner), run(result=result)), ask_of(**more))
    checked(told)
    return types(told)[2:-1], decoded(told)[-1]["response"]["output"][0]


# ── One call of each kind ────────────────────────────────────────────────────

MCP = [
    "output_item.added",
    "mcp_call.in_progress",
    "mcp_call_arguments.delta",
    "mcp_call_arguments.done",
    "mcp_call.completed",
    "output_item.done",
]


def test_a_call_of_a_server_is_an_item_with_what_came_of_it() -> None:
    kinds, item = told_of(TIMES)
    assert kinds == MCP
    del item["id"]
    assert item == {
        "type": "mcp_call",
        "status": "completed",
        "server_label": "clock",
        "name": "times",
        "arguments": '{"zone": "UTC"}',
        "output": "12:00",
        "error": None,
        "approval_request_id": None,
    }


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.type)
def test_a_call_that_failed_says_why_as_an_object(error: RunError) -> None:
    kinds, item = told_of(TIMES, RunResult("tool failed", error=error))
    assert kinds == [name.replace("mcp_call.completed", "mcp_call.failed") for name in MCP]
    assert (item["status"], item["output"]) == ("failed", None)
    shown: Row = {"content": list(error.content)}
    if error.code:
        shown = {"code": error.code, "message": error.message}
    assert item["error"] == {"type": error.type, **shown}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    told = told_whole(whole(owned(TIMES, ""), run()))
    response = checked(told)
    assert types(told)[2:-1] == MCP
    assert items(response)[0]["arguments"] == "{}"


SEARCH = ["output_item.added", "in_progress", "searching", "completed", "output_item.done"]


@pytest.mark.parametrize("kind", ["web_search", "file_search"])
def test_a_search_is_held_back_until_it_says_what_for(kind: Any) -> None:
    owner = ToolOwner("web", "find", kind)
    kinds, _ = told_of(owner)
    word = f"{kind}_call"
    assert kinds == [name if "." in name else f"{word}.{name}" for name in SEARCH]
    teller = teller_of()
    teller.begin()
    assert not teller.tell([BEGIN, *owned(owner)])
    assert not json.loads(teller.response())["output"]
    assert types(teller.tell([RunStart(0, 0)]))[0] == "output_item.added"


def test_what_a_search_has_found_is_shown_where_it_is_included() -> None:
    owner = ToolOwner("web", "find", "web_search")
    _, bare = told_of(owner)
    assert bare["action"] == {"type": "search", "query": "tides", "queries": ["tides"]}
    assert "results" not in bare
    _, rich = told_of(owner, include=INCLUDE)
    assert rich["action"]["sources"] == [{"type": "url", "url": "https://a.example/"}]
    assert [row["text"] for row in rich["results"]] == ["tides rise"]
    files = ToolOwner("files", "find", "file_search")
    assert told_of(files)[1]["results"] is None
    [found] = told_of(files, include=INCLUDE)[1]["results"]
    assert found == {
        "file_id": "file_a", "filename": "A", "score": 0.5, "text": "tides rise", "attributes": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        ('{"url": "https://a/"}', {"type": "open_page", "url": "https://a/"}),
        (
            '{"url": "https://a/", "pattern": "x"}',
            {"type": "find_in_page", "url": "https://a/", "pattern": "x"},
        ),
        ("not json", {"type": "search", "query": "", "queries": [""]}),
        ('{"queries": ["a", "b"]}', {"type": "search", "query": "a", "queries": ["a", "b"]}),
    ],
)
def test_a_look_at_a_page_is_an_action_of_its_own(arguments: str, action: Row) -> None:
    owner = ToolOwner("web", "look", "web_search")
    told = told_whole(whole(owned(owner, arguments), run()))
    assert items(checked(told))[0]["action"] == action | {
        key: None for key in ("sources",) if action["type"] == "search"
    }


def test_what_fetches_a_page_is_shown_as_a_look_at_it() -> None:
    kinds, item = told_of(ToolOwner("web", "get", "web_fetch"))
    assert item["action"] == {"type": "open_page", "url": "https://a.example/"}
    assert kinds[-2] == "web_search_call.completed"


def test_code_is_shown_as_code() -> None:
    owner = ToolOwner("box", "run", "code_interpreter")
    tools = [{"type": "code_interpreter", "container": "cntr_1"}]
    options = ReaderOptions(tool_servers=True)
    told = told_whole(whole(owned(owner), run()), ask_of(options, tools=tools, include=INCLUDE))
    [item] = items(checked(told))
    assert types(told)[3:-2] == [
        "code_interpreter_call.in_progress",
        "code_interpreter_call_code.delta",
        "code_interpreter_call_code.done",
        "code_interpreter_call.interpreting",
        "code_interpreter_call.completed",
    ]
    assert (item["code"], item["container_id"]) == ("print(1)", "cntr_1")
    assert item["outputs"] == [{"type": "logs", "logs": "1\n"}]
    assert told_of(owner)[1]["outputs"] is None


def test_an_image_is_shown_as_base64() -> None:
    kinds, item = told_of(ToolOwner("art", "draw", "image_generation"))
    assert kinds[1:-1] == [
        f"image_generation_call.{name}" for name in ("in_progress", "generating", "completed")
    ]
    assert (item["result"], item["output_format"]) == ("AA==", "png")


def test_an_image_that_a_server_says_in_json_is_shown_too() -> None:
    pictures = ({"type": "image", "url": "data:image/webp;base64,UklGRg=="},)
    drawn = RunResult("Made", content=({"type": "text", "text": "{}"},), outputs=pictures)
    _, item = told_of(ToolOwner("art", "draw", "image_generation"), drawn)
    assert (item["result"], item["output_format"]) == ("UklGRg==", "webp")
    at = RunResult("Made", outputs=({"type": "image", "url": "https://a.org/cat.png"},))
    assert told_of(ToolOwner("art", "draw", "image_generation"), at)[1]["result"] is None


def test_a_search_for_tools_is_followed_by_what_it_has_found() -> None:
    told = told_whole(whole(owned(ToolOwner("", "tool_search", "tool_search")), run()))
    call, output = items(checked(told))
    assert types(told)[2:-1] == ["output_item.added", "output_item.done"] * 2
    assert (call["arguments"], call["execution"]) == ({"query": "weather"}, "server")
    assert [tool["name"] for tool in output["tools"]] == ["weather"]


def test_an_approval_is_shown_whole_and_the_response_is_complete() -> None:
    told = told_whole(whole(owned(ToolOwner("clock", "set", asks=True)), reason="tool_calls"))
    response = checked(told)
    added, done = decoded(told)[2:4]
    assert types(told)[2:] == ["output_item.added", "output_item.done", "completed"]
    assert added["item"] == done["item"]
    assert added["item"]["arguments"] == '{"zone": "UTC"}'
    assert added["item"]["id"].startswith("mcpr_")
    assert response.status == "completed"


def test_an_approved_call_names_its_approval() -> None:
    _, item = told_of(ToolOwner("clock", "set", approval="mcpr_1"))
    assert item["approval_request_id"] == "mcpr_1"


@pytest.mark.parametrize("error", ["", "it does not answer"])
def test_what_a_server_lists_comes_first(error: str) -> None:
    tools = () if error else (ListedTool("times", "", {"type": "object"}),)
    events = whole(text("Hi"))
    events.insert(1, Listed("clock", tools, error))
    told = told_whole(events)
    listing, _ = items(checked(told))
    word = "failed" if error else "completed"
    assert types(told)[2:6] == [
        "output_item.added",
        "mcp_list_tools.in_progress",
        f"mcp_list_tools.{word}",
        "output_item.done",
    ]
    assert (listing["error"] or "") == error
    assert [tool["input_schema"] for tool in listing["tools"]] == [tool.schema for tool in tools]


def test_what_is_hidden_has_no_item() -> None:
    told = told_whole(
        whole(owned(ToolOwner("clock", "times", hidden=True)), run(), text("Hi", block=1))
    )
    assert [item["type"] for item in items(checked(told))] == ["message"]


# ── Several at once, and cut ones ────────────────────────────────────────────


def test_an_item_stays_at_its_place_however_long_its_run_takes() -> None:
    events: list[Event] = [
        *owned(block=0),
        RunStart(0, 0),
        *owned(ToolOwner("web", "find", "web_search"), block=1),
        RunStart(0, 1),
        *text("Hi", block=2),
        RunEnd(0, 1, RESULT),
        RunEnd(0, 0, RESULT),
    ]
    told = told_whole(whole(events))
    assert [item["type"] for item in items(checked(told))] == [
        "mcp_call",
        "web_search_call",
        "message",
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_that_is_cut_is_incomplete(shape: Any) -> None:
    events = [BEGIN, *owned(ToolOwner("s", "t", shape)), RunStart(0, 0)]
    teller = teller_of()
    told = [*teller.begin(), *teller.tell(events), *teller.close(FinalStatus.cancelled().at(9))]
    checked(told)
    [doc] = teller.output()
    assert doc.status == ("failed" if shape == "image_generation" else "incomplete")
    assert not any("completed" in one.type for one in told)


def test_a_call_that_is_cut_in_its_arguments_is_incomplete_or_not_shown() -> None:
    for owner, shown in (
        (TIMES, 1),
        (ToolOwner("clock", "set", asks=True), 0),
        (ToolOwner("w", "find", "web_search"), 0),
    ):
        told = told_whole(whole(owned(owner, '{"zo'), reason="length"))
        response = checked(told)
        assert (response.status, len(response.output)) == ("incomplete", shown)
        assert told[-1].type == "response.incomplete"


def test_too_many_rounds_are_an_incomplete_response_with_its_calls() -> None:
    told = told_whole(whole(owned(), run(), owned(block=1), reason="pause"))
    response = checked(told)
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_messages"
    assert [item["status"] for item in items(response)] == ["completed", "incomplete"]


def test_citations_are_told_before_their_text_ends() -> None:
    citation = {
        "type": "url_citation", "url": "https://a/", "title": "A", "start_index": 0, "end_index": 2,
    }  # fmt: skip
    events: list[Event] = [
        BlockStart(0, 0, "text"),
        Delta(0, 0, "Hi", 1),
        BlockEnd(0, 0, "text", "Hi", annotations=(citation,)),
    ]
    told = told_whole(whole(events))
    [item] = items(checked(told))
    assert item["content"][0]["annotations"] == [citation]
    assert types(told)[5:7] == ["output_text.annotation.added", "output_text.done"]


# ── Any stream ───────────────────────────────────────────────────────────────


@settings(max_examples=150, deadline=None)
@given(served_streams(), st.booleans())
def test_a_stream_of_any_shape_is_what_the_sdk_expects(events: list[Event], rich: bool) -> None:
    grammar = Grammar(1)
    grammar.feed(events)
    ask = ask_of(include=INCLUDE) if rich else ask_of()
    teller = teller_of(ask)
    told = [*teller.begin(), *teller.tell(events)]
    assert teller.outcome is not None
    told += teller.close(teller.outcome.at(9))
    checked(told)
    documents = [item.document for item in teller.output()]
    assert [item_of(document).document for document in documents] == documents
    assert [i.document for i in items_from([json.loads(d) for d in documents])] == documents
    assert json.loads(teller.response()) == decoded(told)[-1]["response"]


@settings(max_examples=100, deadline=None)
@given(served_streams(failing=True))
def test_whatever_breaks_is_closed(events: list[Event]) -> None:
    response = checked(told_whole(events))
    assert response.status == "failed"


@settings(max_examples=100, deadline=None)
@given(served_streams(), st.data())
def test_the_object_is_whole_at_any_moment(events: list[Event], data: st.DataObject) -> None:
    teller = teller_of()
    told = teller.begin()
    cut = data.draw(st.integers(0, len(events)))
    told += teller.tell(events[:cut])
    snapshot = Response.model_validate_json(teller.response(), strict=True)
    added = [row["item"] for row in decoded(told) if row["type"].endswith("item.added")]
    assert [item.id for item in snapshot.output] == [item["id"] for item in added]
    told += teller.close(FinalStatus.failed(BROKEN).at(9))
    assert checked(told).status == "failed"


@settings(max_examples=100, deadline=None)
@given(served_streams(), st.data())
def test_how_arguments_were_cut_changes_nothing_but_the_deltas(
    events: list[Event], data: st.DataObject
) -> None:
    assert merged(told_whole(_recut(events, data))) == merged(told_whole(events))


def _recut(events: Sequence[Event], data: st.DataObject) -> list[Event]:
    other: list[Event] = []
    for event in events:
        if not isinstance(event, Delta) or not event.text:
            other.append(event)
            continue
        at = data.draw(st.integers(0, len(event.text)))
        pieces = (event.text[:at], event.text[at:])
        other += [Delta(event.choice, event.block, piece, event.tokens) for piece in pieces]
    return other


def test_a_presenter_of_runs_does_not_wait_for_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    # What other tests left is none of ours.
    before = sum(isinstance(one, ResponsePresenter) for one in gc.get_objects())
    try:
        told_of(TIMES)
        after = sum(isinstance(one, ResponsePresenter) for one in gc.get_objects())
        assert after == before
    finally:
        gc.enable()
