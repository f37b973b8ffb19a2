"""Results of calls and tasks: complete, asking back, at work, or a failure."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from smg_node.mcp.failures import Failure
from smg_node.mcp.tools.tool_result import (
    CallResult,
    InputRequired,
    TaskAtWork,
    read_result,
    read_task,
)


def result(modern: bool = True, /, **fields: Any) -> Any:
    return read_result(Raw(json.dumps(fields).encode()), modern=modern)


def task(**fields: Any) -> Any:
    return read_task(Raw(json.dumps(fields).encode()))


TEXT = {"type": "text", "text": "x"}


def test_a_complete_result() -> None:
    read = result(content=[TEXT], structuredContent={"big": 2**60 + 1}, isError=True)
    assert read == CallResult((TEXT,), b'{"big": 1152921504606846977}', True)
    assert result() == CallResult()
    assert result(structuredContent=None, resultType="complete") == CallResult()


def test_what_a_modern_server_asks_back() -> None:
    asked = {"k": {"method": "elicitation/create"}}
    read = result(resultType="input_required", inputRequests=asked, requestState="s")
    assert read == InputRequired(asked, "s")
    assert result(resultType="input_required", requestState="") == InputRequired({}, "")
    assert isinstance(result(resultType="input_required"), Failure)


def test_a_kind_of_result_means_nothing_in_the_handshake_era() -> None:
    assert result(False, resultType="task", content=[TEXT]) == CallResult((TEXT,))


def test_a_task_is_asked_for_in_bounds() -> None:
    assert result(resultType="task", taskId="7", pollIntervalMs=10) == TaskAtWork("7", 1.0, {})
    assert result(resultType="task", taskId="7") == TaskAtWork("7", 1.0, {})
    assert result(resultType="task", taskId="7", pollIntervalMs=1e9) == TaskAtWork("7", 60.0, {})
    assert isinstance(result(resultType="task"), Failure)


def test_the_states_of_a_task() -> None:
    assert task(taskId="7", status="working", pollIntervalMs=2000) == TaskAtWork("7", 2.0, {})
    asked = {"k": {"method": "elicitation/create"}}
    assert task(taskId="7", status="input_required", inputRequests=asked).requests == asked
    assert task(taskId="7", status="completed", result={"content": [TEXT]}) == CallResult((TEXT,))
    failed = task(taskId="7", status="failed", error={"code": -3, "message": "broken"})
    assert (failed.code, failed.message) == (-3, "broken")
    assert task(taskId="7", status="failed", statusMessage="oh").message == "oh"
    assert task(taskId="7", status="failed").message == "the task failed"
    assert "cancelled" in task(taskId="7", status="cancelled").message
    assert isinstance(task(taskId="7", status="asleep"), Failure)
    assert isinstance(task(taskId="7", status="completed"), Failure)


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "text"},
        {"content": ["text"]},
        {"isError": "yes"},
        {"resultType": "later"},
        {"resultType": 3},
    ],
)
def test_what_is_no_result_is_a_failure(fields: dict[str, Any]) -> None:
    assert isinstance(result(**fields), Failure)


@given(st.binary(max_size=80))
def test_any_bytes_are_an_answer_or_a_failure(text: bytes) -> None:
    for read in (read_result(Raw(text), modern=True), read_task(Raw(text))):
        assert isinstance(read, CallResult | InputRequired | TaskAtWork | Failure)
