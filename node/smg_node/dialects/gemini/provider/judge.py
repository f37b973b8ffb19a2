"""Judge of generateContent: looks at a vendor's answer as it passes unread: begun, whole, failed, what it cost. Pure.

Of most events only the place of a few words is looked for. Every event tells the usage up to there; the last that does
so is kept, and read at the end. An element of a stream in the form of one array is an event, with or without the
punctuation around it.

An answer that the model garbled is a failure while another attempt may still give it; once it has begun, its end
is the client's to read.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.gemini.provider.answer_facts import (
    BROKEN,
    UsageCounts,
    broken,
    finish_of,
    is_blocked,
    reason_in,
    vendor_error,
)
from smg_node.dialects.worker_errors import NO_WORDS, WorkerError

_USAGE: Final = b'"usageMetadata"'
_FINISH: Final = b'"finishReason"'
_ERROR: Final = b'"error"'
_PUNCTUATION: Final = b"[], \t\r\n"
_NOTHING: Final[tuple[Any, ...]] = (None, "", [], {})
_decode: Final = msgspec.json.Decoder().decode


class ContentJudge:
    """Judge of one answer; see `EventJudge`."""

    def __init__(self) -> None:
        self.begun = False
        self.done = False
        self.failure: SmgError | WorkerError | None = None
        self.deltas = 0
        self._counts = UsageCounts()
        self._unread = b""
        """The last event that tells the usage, if it was not read."""
        self._open: set[int] = set()
        """Candidates that have begun and not finished."""

    @property
    def usage(self) -> Usage | None:
        """See `EventJudge`."""
        if self._unread:
            self._counts.take(_answer(self._unread))
            self._unread = b""
        return self._counts.usage()

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream: its name ("" for none) and its data."""
        if self.begun and _FINISH not in data and _ERROR not in data and name != b"error":
            # A prompt is refused before the first word, so that is not looked for.
            self.deltas += 1
            if _USAGE in data:
                self._unread = data
            return
        try:
            said = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            said = self._element(data, is_error=name == b"error")
        if said is not None:
            self._unread = b""
            self._judge(said, is_error=name == b"error")

    def finish(self) -> None:
        """Take in that the stream has ended; sets `failure` if the answer was not whole."""
        if self.failure is None and not self.done:
            self.failure = broken("the vendor ended its answer before the end of it")

    def whole(self, body: bytes) -> None:
        """Take the whole body of an answer that is not streamed, or is streamed as one array."""
        try:
            said = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.failure = broken("the vendor's answer is no JSON")
            return
        answers = said if isinstance(said, list) else [said]
        for answer in answers:
            # What garbles an answer is judged with all of it in view.
            self.begun = self.begun or _speaks(answer)
        for answer in answers:
            if self.failure is None:
                self._judge(answer, is_error=False)
        if self.failure is None:
            self.finish()

    # ── One event ────────────────────────────────────────────────────────────

    def _element(self, data: bytes, *, is_error: bool) -> Any:
        """Return an element of an array without the punctuation around it; None for punctuation alone, and garbage."""
        bare = data.strip(_PUNCTUATION)
        if not bare and data:
            return None
        try:
            return _decode(bare)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.failure = NO_WORDS if is_error else broken("the vendor's answer is no JSON")
            return None

    def _judge(self, answer: Any, *, is_error: bool) -> None:
        if isinstance(answer, list):
            # An error may come in an array of its own.
            for one in answer:
                self._judge(one, is_error=is_error)
            return
        if not isinstance(answer, dict):
            self.failure = broken("the vendor's answer is no object of JSON")
            return
        error = vendor_error(answer)
        if error is not None or is_error:
            self.failure = error or vendor_error({"error": answer}) or NO_WORDS
            return
        self._counts.take(answer)
        if _speaks(answer):
            self.begun = True
            self.deltas += 1
        candidates = answer.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else ():
            if isinstance(candidate, dict):
                self._candidate(candidate)
        self.done = not self._open and (self.done or is_blocked(answer))

    def _candidate(self, candidate: Mapping[str, Any]) -> None:
        index, reason = candidate.get("index") or 0, reason_in(candidate)
        if type(index) is not int:
            self.failure = broken("the vendor's answer has a candidate with an impossible index")
        elif not reason:
            self._open.add(index)
        elif reason in BROKEN and not self.begun:
            try:
                finish_of(reason, called=False)
            except SmgError as error:
                self.failure = error
        else:
            self._open.discard(index)
            self.done = True


def _speaks(answer: object) -> bool:
    """Whether there is something of the answer in it: more than that there will be one."""
    candidates = answer.get("candidates") if isinstance(answer, dict) else None
    for candidate in candidates if isinstance(candidates, list) else ():
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and any(
                value not in _NOTHING for name, value in part.items() if name != "thought"
            ):
                return True
    return False


def _answer(data: bytes) -> Mapping[str, Any]:
    """Return an event that was passed on unread; an empty one if it is none."""
    try:
        said = _decode(data.strip(_PUNCTUATION))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
