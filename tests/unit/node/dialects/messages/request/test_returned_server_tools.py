"""Runs of server tools that clients of Messages send back: searches, pages, code and tools that were found."""

from typing import Any

import pytest

from smg_node.core.generation.request import ToolCall, Turn
from smg_node.core.generation.tool_owner import ToolOwner
from support.answers.run_blocks import (
    GO,
    Block,
    open_ids,
    refusal,
    request,
    sealed,
    searched,
    server_result,
    server_use,
    text,
    turns,
)


@pytest.mark.parametrize(
    ("name", "shape", "block", "content", "failed"),
    [
        ("web_search", "web_search", searched(sealed("[1] T0"), ""), "[1] T0", False),
        (
            "web_search",
            "web_search",
            searched("EoYB", ""),
            "[1] T0 https://0.test\n[2] T1 https://1.test",
            False,
        ),
        (
            "web_search",
            "web_search",
            searched(sealed("x", "other")),
            "[1] T0 https://0.test",
            False,
        ),
        ("web_search", "web_search", searched(), "", False),
        (
            "web_search",
            "web_search",
            server_result(
                "web_search",
                {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            ),
            "tool failed: max_uses_exceeded",
            True,
        ),
        (
            "code_execution",
            "code_interpreter",
            server_result(
                "code_execution",
                {
                    "type": "code_execution_result",
                    "stdout": "1\n",
                    "stderr": "",
                    "return_code": 0,
                    "content": [],
                },
            ),
            "1\n",
            False,
        ),
        (
            "bash_code_execution",
            "code_interpreter",
            server_result(
                "bash_code_execution",
                {
                    "type": "bash_code_execution_result",
                    "stdout": "a",
                    "stderr": "b",
                    "return_code": 2,
                    "content": [],
                },
            ),
            "a\nb",
            True,
        ),
        (
            "text_editor_code_execution",
            "code_interpreter",
            server_result(
                "text_editor_code_execution",
                {"type": "text_editor_code_execution_create_result", "is_file_update": False},
            ),
            '{"is_file_update":false}',
            False,
        ),
        (
            "web_fetch",
            "web_fetch",
            server_result(
                "web_fetch",
                {
                    "type": "web_fetch_result",
                    "url": "https://a.test",
                    "retrieved_at": None,
                    "content": {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "Page"},
                    },
                },
            ),
            "Page",
            False,
        ),
        (
            "tool_search_tool_bm25",
            "tool_search",
            server_result(
                "tool_search",
                {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [
                        {"type": "tool_reference", "tool_name": "docs__find"},
                        {"type": "tool_reference", "tool_name": "other"},
                    ],
                },
            ),
            "docs__find\nother",
            False,
        ),
    ],
)
def test_results_of_server_tools_are_told_to_the_model(
    name: str, shape: Any, block: Block, content: str, *, failed: bool
) -> None:
    said = turns(GO, ("assistant", [server_use(name), block, text("So")]))
    (call,) = said[1].calls
    assert call == ToolCall("s", name, '{"query":"q"}', ToolOwner("", name, shape))
    assert said[2] == Turn(
        "tool", content, answers_call="s", extra={"is_error": True} if failed else {}
    )


def test_tools_that_a_search_found_are_told_with_their_definitions() -> None:
    block = server_result(
        "tool_search",
        {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "look"}],
        },
    )
    said = turns(GO, ("assistant", [server_use("tool_search_tool_bm25"), block, text("So")]))
    assert said[2].references == ("look",)
    assert '"name":"look"' in str(said[2].content)


def test_tools_that_a_search_found_stay_callable() -> None:
    found = [{"type": "tool_reference", "tool_name": name} for name in ("look", "docs__find")]
    block = server_result(
        "tool_search", {"type": "tool_search_tool_search_result", "tool_references": found}
    )
    serving = request(GO, ("assistant", [server_use("tool_search_tool_bm25"), block])).serving
    assert serving is not None
    assert serving.found == ("look", "docs__find")


def test_an_open_search_is_run_if_the_request_brings_the_tool() -> None:
    messages = [GO, ("assistant", [server_use()])]
    assert open_ids(*messages) == ["s"]
    assert refusal(*messages, tools=[], mcp_servers=[]).where == "messages[1].content[0].name"
