"""Judge: says of a Converse answer that passes unread when it begins, whether it is whole, and what it cost. Pure.

Once the answer has begun, events of its blocks are not decoded: only they name a block, and a quotation mark inside of
text is never a bare one.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.converse.frame_errors import exception_named
from smg_node.dialects.converse.vendor_answer import (
    broken,
    object_of,
    part_of,
    reason_of,
    text_of,
    usage_of,
)
from smg_node.dialects.worker_errors import WorkerError

_DELTA: Final = b"contentBlockDelta"
_OF_A_BLOCK: Final = b'"contentBlockIndex"'
_OF_THE_END: Final = b'"stopReason"'
_FAILURES: Final = b"exception"


class ConverseJudge:
    """Judges one answer; see `EventJudge`. The name of an event is its type, or that of an exception."""

    def __init__(self) -> None:
        self.begun = False
        self.done = False
        self.failure: SmgError | WorkerError | None = None
        self.usage: Usage | None = None
        self.deltas = 0

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream."""
        if self.begun and (name == _DELTA or (_OF_A_BLOCK in data and _OF_THE_END not in data)):
            self.deltas += name == _DELTA
            return
        if self.failure is not None:
            return
        try:
            if name.lower().endswith(_FAILURES):
                raise exception_named(name.decode("ascii", "replace"), data)
            self._take(object_of(data))
        except (SmgError, WorkerError) as failure:
            self.failure = failure

    def finish(self) -> None:
        """Take in that the stream has ended."""
        if not self.done and self.failure is None:
            self.failure = broken("the vendor's answer broke off before its end")

    def whole(self, body: bytes) -> None:
        """Take the whole body of an answer that is not streamed."""
        try:
            told = object_of(body)
            if "output" not in told:
                if told.get("message"):
                    raise exception_named(text_of(told.get("__type")), body)
                raise broken("the vendor's answer has no message")
            self._take(told)
            self.finish()
        except (SmgError, WorkerError) as failure:
            self.failure = failure

    def _take(self, told: Mapping[str, Any]) -> None:
        if "stopReason" in told:
            reason_of(told, calls=False)
            self.begun = self.done = True
        self.usage = usage_of(told) or self.usage
        if not self.begun:
            start = part_of(told, "start")
            says = _says(part_of(told, "delta"))
            self.begun = bool(start) or says
            self.deltas += says


def _says(delta: Mapping[str, Any]) -> bool:
    """Whether a delta says anything: some models send an empty one first."""
    return any(_says(value) if isinstance(value, dict) else bool(value) for value in delta.values())
