"""Searches for tools as each API has them; the official types are the judges."""

import json
from typing import Any

import pytest
from anthropic.types import ToolSearchToolResultBlock

from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult
from smg_node.dialects.messages.tool_runs.shown_runs import result_block
from smg_node.dialects.served_tools.tool_search_forms import search_call_item, search_output_item
from support.clients.sdk_validation import opinion_of_item

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FOUND = RunResult(
    "",
    found=(
        ListedTool("now", "The weather", SCHEMA),
        ListedTool("send_mail"),
        ListedTool("tomorrow", "The forecast", SCHEMA),
        ListedTool("count", "Counts"),
    ),
    found_at=("meteo", "", "meteo", "numbers"),
)


def opinion(item: dict[str, Any]) -> list[str]:
    return opinion_of_item(json.dumps(item).encode())


@pytest.mark.parametrize("status", ["in_progress", "completed", "incomplete"])
def test_the_call_is_an_item_of_the_sdk(status: Any) -> None:
    item = search_call_item("tsc_1", {"query": "weather"}, status)
    assert opinion(item) == []
    assert (item["execution"], item["call_id"]) == ("server", None)


def test_what_was_found_is_an_item_of_the_sdk() -> None:
    item = search_output_item("tso_1", FOUND, {"meteo": "Weather everywhere"})
    assert opinion(item) == []
    meteo, mail, numbers = item["tools"]
    assert (meteo["type"], meteo["name"]) == ("namespace", "meteo")
    assert meteo["description"] == "Weather everywhere"
    assert [tool["name"] for tool in meteo["tools"]] == ["now", "tomorrow"]
    assert mail == {
        "type": "function",
        "name": "send_mail",
        "description": "",
        "parameters": {},
        "strict": False,
        "defer_loading": True,
    }
    assert numbers["description"] == "Tools of numbers"


def test_nothing_that_was_found_is_one_too() -> None:
    item = search_output_item("tso_1", RunResult("No tool fits."), {})
    assert opinion(item) == []
    assert item["tools"] == []


def search_result_block(call_id: str, result: RunResult) -> dict[str, Any]:
    return result_block(ToolOwner("", "find", "tool_search"), call_id, result, lambda text: text)


def strictly(block: dict[str, Any]) -> None:
    read = ToolSearchToolResultBlock.model_validate_json(json.dumps(block), strict=True)
    assert read.to_dict() == block


def test_references_are_a_block_of_the_sdk() -> None:
    block = search_result_block("srvtoolu_1", FOUND)
    strictly(block)
    assert block["content"]["tool_references"][0] == {"type": "tool_reference", "tool_name": "now"}
    strictly(search_result_block("srvtoolu_1", RunResult("No tool fits.")))


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (-32602, "invalid_tool_input"),
        (504, "execution_time_exceeded"),
        (429, "too_many_requests"),
        (502, "unavailable"),
        (-32001, "unavailable"),
    ],
)
def test_what_went_wrong_is_a_block_of_the_sdk(code: int, word: str) -> None:
    failed = RunResult("", RunError("mcp_protocol_error", code, "why"))
    block = search_result_block("srvtoolu_1", failed)
    strictly(block)
    assert block["content"]["error_code"] == word
    assert block["content"]["error_message"] == "why"
