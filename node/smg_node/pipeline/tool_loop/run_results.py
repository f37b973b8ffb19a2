"""Run results: what came of a call of a server, as clients and models are shown it. Pure."""

from typing import Final

from smg_node.core.generation.tool_serving import RunError, RunResult
from smg_node.mcp.failures import (
    NOT_RUN,
    TOOL_ERROR_TYPE,
    Failure,
    FailureKind,
    prompt_text,
    refused,
)
from smg_node.mcp.tools.content import cut_text, text_of
from smg_node.mcp.tools.tool_result import CallResult

FAILED: Final = "the tool failed and says nothing of it"
_ALL: Final = 1 << 62
CUT: Final = "the answer ended before the call did"


def result_of(outcome: CallResult | Failure, *, bytes_max: int) -> RunResult:
    """Return what came of a call; of its texts a model is shown `bytes_max` bytes, and no more is kept."""
    if isinstance(outcome, Failure):
        error = RunError(outcome.row.type, outcome.code, outcome.message)
        return RunResult(prompt_text(outcome), error)
    whole = text_of(outcome, bytes_max=_ALL)
    text = cut_text(whole, bytes_max)
    content = outcome.content
    if text != whole:
        content = ({"type": "text", "text": text},)
    if not outcome.is_error:
        return RunResult(text, content=content)
    return RunResult(text or FAILED, RunError(TOOL_ERROR_TYPE, content=content), content)


def outcome_of(outcome: CallResult | Failure) -> str:
    """Return the word of the metrics of calls for what came of one."""
    if isinstance(outcome, Failure):
        return outcome.outcome
    return "tool_error" if outcome.is_error else "ok"


def not_run(why: str) -> RunResult:
    """Return the result of a call that a rule of this node keeps from being run."""
    return result_of(refused(why), bytes_max=0)


def cut_result(*, sent: bool) -> RunResult:
    """Return the result of a call that was under way when its answer ended."""
    why = f"{CUT}; it may have run" if sent else CUT
    failure = Failure(FailureKind.REFUSED, NOT_RUN, why, sent=sent)
    text = f"tool failed: {why}" if sent else prompt_text(failure)
    return RunResult(text, RunError(failure.row.type, failure.code, why), cut=True)
