"""Run results: the table of what may happen, as clients and models are shown it."""

from typing import Any

import pytest

from smg_node.core.generation.tool_serving import RunError
from smg_node.mcp.failures import Failure, FailureKind, bare_status, lost, refused, timed_out
from smg_node.mcp.tools.content import text_of
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop import run_results
from smg_node.pipeline.tool_loop.run_results import FAILED, cut_result, not_run, result_of

MAX = 1000


def text(*texts: str) -> tuple[dict[str, Any], ...]:
    return tuple({"type": "text", "text": one} for one in texts)


@pytest.mark.parametrize(
    ("outcome", "shown", "error"),
    [
        (CallResult(text("a", "b")), "a\nb", None),
        (CallResult(structured=b'{"sum":3}'), '{"sum":3}', None),
        (
            CallResult(text("bad city"), is_error=True),
            "bad city",
            RunError("mcp_tool_execution_error", content=text("bad city")),
        ),
        (
            CallResult(is_error=True),
            FAILED,
            RunError("mcp_tool_execution_error"),
        ),
        (
            Failure(FailureKind.PROTOCOL, -32602, "unknown tool"),
            "tool failed: unknown tool",
            RunError("mcp_protocol_error", -32602, "unknown tool"),
        ),
        (
            bare_status(403),
            "tool failed: the server answered 403 Forbidden",
            RunError("http_error", 403, "the server answered 403 Forbidden"),
        ),
        (timed_out("slow"), "tool failed: slow", RunError("http_error", 504, "slow")),
        (lost("reset", sent=True), "tool failed: reset", RunError("http_error", 502, "reset")),
        (refused("rule x"), "not run: rule x", RunError("mcp_protocol_error", -32001, "rule x")),
    ],
)
def test_each_row_of_the_table(
    outcome: CallResult | Failure, shown: str, error: RunError | None
) -> None:
    result = result_of(outcome, bytes_max=MAX)
    assert (result.text, result.error) == (shown, error)


def test_what_is_cut_is_kept_as_it_is_shown() -> None:
    whole = result_of(CallResult(text("x" * MAX)), bytes_max=MAX)
    assert whole.content == text("x" * MAX)
    cut = result_of(CallResult(text("x" * (MAX + 1)), is_error=True), bytes_max=MAX)
    assert cut.content == text(cut.text)
    assert cut.error is not None
    assert cut.error.content == cut.content


def test_pictures_are_named_for_the_model_and_kept_for_the_client() -> None:
    content = ({"type": "image", "mimeType": "image/png", "data": "AAAA" * 4000},)
    result = result_of(CallResult(content), bytes_max=MAX)
    assert result.text == "[image/png, 12 kB]"
    assert result.content == content


def test_what_was_not_run_and_what_was_cut_say_so() -> None:
    assert not_run("no").text == "not run: no"
    assert cut_result(sent=True).cut
    assert "may have run" in cut_result(sent=True).text
    assert cut_result(sent=False).text.startswith("not run: ")


@pytest.mark.parametrize("bytes_max", [20, 1_000])
def test_the_texts_of_a_result_are_put_together_once(
    bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[CallResult] = []

    def counted(result: CallResult, *, bytes_max: int) -> str:
        joined.append(result)
        return text_of(result, bytes_max=bytes_max)

    monkeypatch.setattr(run_results, "text_of", counted)
    outcome = CallResult(({"type": "text", "text": "line of text\n" * 10},))
    shown = result_of(outcome, bytes_max=bytes_max)
    assert shown.text == text_of(outcome, bytes_max=bytes_max)
    assert (shown.content == outcome.content) == (bytes_max == 1_000)
    assert len(joined) == 1
