"""Judge: says of a vendor's response that passes unread when it begins, whether it is whole, what it cost. Pure.

Once the answer has begun, only the type of an event is read, and the whole of one that ends it or is an error. A response
that is only queued, for a client that will ask for it again, is an answer too.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.openai.provider.answer_values import broken, object_at, object_of, string_at
from smg_node.dialects.responses.provider.answer_facts import (
    TERMINAL,
    error_in,
    finish_of,
    usage_of,
)
from smg_node.dialects.worker_errors import WorkerError

_DONE: Final = b"[DONE]"
_DELTA: Final = b'.delta"'
_PREAMBLES: Final = ("message", "reasoning", "")
"""Items that are nothing yet when they are added."""


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    error: None = None


_event: Final = msgspec.json.Decoder(_Event).decode


class ResponsesJudge:
    """Judges one answer; see `EventJudge`."""

    def __init__(self) -> None:
        self.begun = False
        self.done = False
        self.failure: SmgError | WorkerError | None = None
        self.usage: Usage | None = None
        self.deltas = 0

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream."""
        if self.begun and name != b"error" and _is_plain(data):
            self.deltas += _DELTA in data
            return
        if self.done or self.failure is not None or data.strip() == _DONE:
            return
        try:
            self._take(object_of(data), is_error=name == b"error")
        except (SmgError, WorkerError) as failure:
            self.failure = failure

    def finish(self) -> None:
        """Take in that the stream has ended."""
        if not self.done and self.failure is None:
            self.failure = broken("the vendor's answer broke off before its end")

    def whole(self, body: bytes) -> None:
        """Take the whole body of an answer that is not streamed."""
        try:
            response = object_of(body)
            failed = response.get("status") == "failed"
            event = {"response": response} if failed else response
            error = error_in(event, "response.failed" if failed else "")
            if error is not None:
                raise error
            if "output" not in response:
                raise broken("the vendor's answer has no output")
            self.usage = usage_of(response)
            self.begun = self.done = True
        except (SmgError, WorkerError) as failure:
            self.failure = failure

    def _take(self, event: Mapping[str, Any], *, is_error: bool) -> None:
        kind = string_at(event, "type")
        error = error_in(event, "error" if is_error else kind)
        if error is not None:
            raise error
        if kind in TERMINAL:
            response = object_at(event, "response")
            finish_of(response)
            self.usage = usage_of(response)
            self.begun = self.done = True
        elif kind == "response.output_item.added":
            self.begun = self.begun or string_at(event, "item", "type") not in _PREAMBLES
        elif kind == "response.output_item.done":
            self.begun = True
        elif kind.endswith(".delta"):
            self.begun = self.begun or bool(event.get("delta"))
            self.deltas += 1


def _is_plain(data: bytes) -> bool:
    """Whether an event neither ends the answer nor is an error."""
    try:
        kind = _event(data).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(kind) and kind not in TERMINAL and kind != "error"
