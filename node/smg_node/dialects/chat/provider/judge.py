"""Judge: says of a vendor's chat answer that passes unread when it begins, whether it is whole, what it cost. Pure.

A choice that has begun must finish; the answer is whole when all have. `[DONE]` is not waited for, because usage comes
before it, and a vendor's moderation after that. Once the answer has begun, a plain chunk is decoded as far as it takes to
see that it has no end, no error and no usage.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.chat.listener import NO_REASONS, usage_of
from smg_node.dialects.openai.provider.answer_values import broken
from smg_node.dialects.openai.provider.quirks import FINISH_OPTIONAL
from smg_node.dialects.worker_errors import NO_WORDS, WorkerError, error_of
from smg_node.dialects.worker_usage import tier_in, usage_in

_DONE: Final = b"[DONE]"
_INDEX_MAX: Final = 4_096
_decode: Final = msgspec.json.Decoder().decode


class _Choice(msgspec.Struct, gc=False):
    """A choice that has not finished."""

    index: int = 0
    finish_reason: None = None


class _Chunk(msgspec.Struct, gc=False):
    """A chunk as nearly all are; what is not is decoded once more, as it is."""

    choices: list[_Choice]
    error: None = None
    usage: None = None
    x_groq: None = None


_plain: Final = msgspec.json.Decoder(_Chunk).decode


class ChatJudge:
    """Judges one answer; see `EventJudge`."""

    def __init__(self, quirks: Collection[str] = ()) -> None:
        self.begun = False
        self.done = False
        self.failure: SmgError | WorkerError | None = None
        self.usage: Usage | None = None
        self.deltas = 0
        self._tier = ""
        self._may_lack_reason = FINISH_OPTIONAL in quirks
        self._open: set[int] = set()
        """Choices that have begun and not finished."""
        self._finished: set[int] = set()

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream."""
        if self.begun and name != b"error" and _is_plain(data):
            self.deltas += 1
            return
        if self.failure is not None:
            return
        if data.strip() == _DONE:
            self._over()
            return
        said = self._object(data, is_error=name == b"error")
        if said is not None:
            self._hear(said)

    def finish(self) -> None:
        """Take in that the stream has ended."""
        if not self.done and self.failure is None:
            self.failure = broken("the vendor ended its answer before the end of it")

    def whole(self, body: bytes) -> None:
        """Take the whole body of an answer that is not streamed."""
        said = self._object(body, is_error=False)
        if said is None:
            return
        if not isinstance(said.get("choices"), list):
            self.failure = broken("the vendor's answer has no choices")
            return
        self._hear(said)
        if self.failure is None:
            self._over()
            self.finish()

    # ── Event by event ───────────────────────────────────────────────────────

    def _object(self, data: bytes, *, is_error: bool) -> dict[str, Any] | None:
        """Return the object of an event; None for an error, or what is none, which is the failure then."""
        try:
            said = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.failure = NO_WORDS if is_error else broken("the vendor's answer is no JSON")
            return None
        error = error_of(said)
        if error is not None or is_error:
            self.failure = error or error_of({"error": said}) or NO_WORDS
            return None
        if not isinstance(said, dict):
            self.failure = broken("the vendor's answer is no object of JSON")
            return None
        return said

    def _hear(self, said: Mapping[str, Any]) -> None:
        self._tier = tier_in(said) or self._tier
        self.usage = usage_of(usage_in(said), self._tier) or self.usage
        choices = said.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                self.failure = broken("the vendor's answer has something else where choices belong")
                return
            if _has_words(choice):
                self.begun = True
                self.deltas += not choice.get("finish_reason")
            self._choose(choice)
        self.done = self.done or bool(self._finished and not self._open)

    def _choose(self, choice: Mapping[str, Any]) -> None:
        index, reason = choice.get("index") or 0, choice.get("finish_reason")
        if type(index) is not int or not 0 <= index < _INDEX_MAX:
            self.failure = broken("the vendor's answer has a choice with an impossible index")
        elif not reason:
            if index not in self._finished:
                self._open.add(index)
                self.done = False
        elif not isinstance(reason, str) or reason in NO_REASONS:
            self.failure = broken("the vendor gave up in the middle of its answer")
        else:
            self._open.discard(index)
            self._finished.add(index)
            self.begun = True

    def _over(self) -> None:
        """Take in that the vendor says that all was said."""
        if self._may_lack_reason and self._open:
            self._finished |= self._open
            self._open.clear()
            self.begun = self.done = True


def _is_plain(data: bytes) -> bool:
    """Whether a chunk has choices of which none ends, and tells neither an error nor usage."""
    try:
        choices = _plain(data).choices
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return len(choices) == 1 and choices[0].index == 0


def _has_words(choice: Mapping[str, Any]) -> bool:
    """Whether a choice has some of the answer: more than that there will be one."""
    for part in (choice.get("delta"), choice.get("message")):
        if isinstance(part, dict) and any(value for name, value in part.items() if name != "role"):
            return True
    return bool(choice.get("finish_reason"))
