"""Judge: says of a vendor's Messages answer that passes unread when it begins, whether it is whole, what it cost. Pure.

Once the answer has begun, its deltas are not decoded: they are known by the name of their event or by how their data
begins. Whatever a client can see begins it, also a block that only the vendor understands.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.messages.provider.vendor_answer import (
    UsageCounts,
    broken,
    object_of,
    reason_of,
)
from smg_node.dialects.worker_errors import WorkerError

_DELTA: Final = b"content_block_delta"
_DELTAS: Final = (b'{"type":"content_block_delta"', b'{"type": "content_block_delta"')
_DONE: Final = b"[DONE]"
_WORDS: Final = ("text", "thinking", "signature", "partial_json")
"""Members of a delta or a block that say something if they are not empty."""


class MessagesJudge:
    """Judges one answer; see `EventJudge`."""

    def __init__(self) -> None:
        self.begun = False
        self.done = False
        self.failure: SmgError | WorkerError | None = None
        self.usage: Usage | None = None
        self.deltas = 0
        self._counts = UsageCounts()
        self._reason = ""

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream."""
        if self.begun and (name == _DELTA or data.startswith(_DELTAS)):
            self.deltas += 1
            return
        if self.done or self.failure is not None or data.strip() == _DONE:
            return
        try:
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
            message = object_of(body)
            if not isinstance(message.get("content"), list):
                raise broken("the vendor's answer has no list of blocks")
            self._count(message.get("usage"))
            self._reason = reason_of(message)
            self._stop()
        except (SmgError, WorkerError) as failure:
            self.failure = failure

    # ── Event by event ───────────────────────────────────────────────────────

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == _DELTA.decode():
            if _says(event.get("delta")):
                self.begun = True
                self.deltas += 1
        elif kind == "content_block_start":
            self.begun = self.begun or _shows(event.get("content_block"))
        elif kind == "message_start":
            message = event.get("message")
            if isinstance(message, dict):
                self._reason = reason_of(message)
                self._count(message.get("usage"), at_start=True)
        elif kind == "message_delta":
            delta = event.get("delta")
            if isinstance(delta, dict):
                self._reason = reason_of(delta) or self._reason
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self._stop()

    def _count(self, usage: object, *, at_start: bool = False) -> None:
        self._counts.take(usage, at_start=at_start)
        self.usage = self._counts.usage() or self.usage

    def _stop(self) -> None:
        if not self._reason:
            raise broken("the vendor ended its answer without a reason")
        self.begun = self.done = True


def _says(part: object) -> bool:
    return isinstance(part, dict) and any(part.get(name) for name in _WORDS)


def _shows(block: object) -> bool:
    """Whether a block that starts is something already: texts and thoughts are empty at first."""
    if not isinstance(block, dict):
        return False
    return block.get("type") not in ("text", "thinking") or _says(block)
