"""Results of `tools/call` and `tasks/get` as they come: complete, wanting input, or a task still at work. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from smg_node.mcp.failures import INTERNAL_ERROR, Failure, FailureKind, plain_text, unreadable

POLL_S_MIN: Final = 1.0
POLL_S_MAX: Final = 60.0
"""A server that wants to be asked more rarely is asked this often all the same: a call has its time."""


class CallResult(msgspec.Struct, frozen=True):
    """A complete result. `structured` is JSON text, b"" where there is none; `is_error`: the tool says that it failed."""

    content: tuple[Mapping[str, Any], ...] = ()
    structured: bytes = b""
    is_error: bool = False


class InputRequired(NamedTuple):
    """A server asks back. `requests` by the server's own key; `state` is to be given back as it is, None if there is none."""

    requests: Mapping[str, Any]
    state: str | None


class TaskAtWork(NamedTuple):
    """A task that is not over; `poll_s` seconds until it may be asked for. `requests` is what it asks back."""

    task_id: str
    poll_s: float
    requests: Mapping[str, Any]


ToolAnswer: TypeAlias = CallResult | InputRequired | TaskAtWork | Failure


class _Result(msgspec.Struct, rename="camel"):
    content: list[dict[str, Any]] = []
    structured_content: Raw = Raw(b"null")
    is_error: bool = False
    result_type: str = "complete"
    input_requests: dict[str, Any] | None = None
    request_state: str | None = None
    task_id: str = ""
    status: str = ""
    poll_interval_ms: int | float | None = None
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")
    status_message: str | None = None


class _TaskError(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""


_decode: Final = msgspec.json.Decoder(_Result).decode
_decode_error: Final = msgspec.json.Decoder(_TaskError).decode


def read_result(result: Raw, *, modern: bool) -> ToolAnswer:
    """Return what a server answered to `tools/call`; a failure for what is no result."""
    read = _read(result)
    if isinstance(read, Failure):
        return read
    if not modern or read.result_type == "complete":
        structured = bytes(read.structured_content)
        return CallResult(
            tuple(read.content), b"" if structured == b"null" else structured, read.is_error
        )
    if read.result_type == "input_required":
        if read.request_state is None and not read.input_requests:
            return unreadable("the server wants input and does not say which")
        return InputRequired(read.input_requests or {}, read.request_state)
    if read.result_type == "task" and read.task_id:
        return TaskAtWork(read.task_id, _poll_s(read.poll_interval_ms), {})
    return unreadable(f"a result of the unknown kind {plain_text(read.result_type, 40)!r}")


def read_task(result: Raw) -> ToolAnswer:
    """Return what a server answered to `tasks/get`."""
    read = _read(result)
    if isinstance(read, Failure):
        return read
    match read.status:
        case "completed":
            return read_result(read.result, modern=False)
        case "failed":
            return _task_failure(read)
        case "cancelled":
            return Failure(FailureKind.PROTOCOL, INTERNAL_ERROR, "the server cancelled the task")
        case "working" | "input_required":
            asked = read.input_requests or {} if read.status == "input_required" else {}
            return TaskAtWork(read.task_id, _poll_s(read.poll_interval_ms), asked)
        case _:
            return unreadable("the state of a task is none that is known")


def _read(result: Raw) -> _Result | Failure:
    try:
        return _decode(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return unreadable("the server's answer is no result of a tool")


def _task_failure(read: _Result) -> Failure:
    try:
        error = _decode_error(read.error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        error = _TaskError()
    message = error.message or read.status_message or "the task failed"
    return Failure(FailureKind.PROTOCOL, error.code, plain_text(message))


def _poll_s(poll_ms: float | None) -> float:
    return POLL_S_MIN if poll_ms is None else min(max(poll_ms / 1000, POLL_S_MIN), POLL_S_MAX)
