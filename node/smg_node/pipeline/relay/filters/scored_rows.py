"""Scored rows: counts the log probabilities of a relayed completion against its worker's usage. Pure.

There is a row for each token that usage counts: of the answer, and with `echo` of the prompt, for
each answer to it. Scorers cut such lists by their length, so one that is shorter is no answer.
"""

from collections.abc import Mapping
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.json_cursor import whole
from smg_node.engines.transport.grpc_status import LOGPROBS_MISSING_CODE
from smg_node.pipeline.relay.filters.answer_filter import AnswerFilter, event_of, objects
from smg_node.pipeline.relay.filters.streamed_usage import StreamedUsage


class ScoredRows(AnswerFilter):
    """Counter of the rows of one answer, whose client sent `fields`."""

    def __init__(self, fields: Mapping[str, Any], usage: StreamedUsage) -> None:
        super().__init__()
        self._usage = usage
        self._rows = 0
        self._each = whole(fields.get("n")) or 1
        self._echo = fields.get("echo") is True
        self._no_answer = fields.get("max_tokens") == 0
        # Of several candidates only some are shown, and all are counted.
        self._hidden = (whole(fields.get("best_of")) or 1) > self._each or bool(
            fields.get("use_beam_search")
        )

    def chunk(self, chunk: dict[str, Any], raw: bytes) -> bytes:
        """See `AnswerFilter`."""
        empty = not chunk["choices"]
        self._count(chunk)
        if not self._usage.take(chunk):
            return raw
        return b"" if empty else event_of(chunk)

    def ending(self) -> bytes:
        """See `AnswerFilter`; UPSTREAM_FAILED if there are too few rows."""
        self._check()
        return b""

    def whole(self, answer: dict[str, Any]) -> bool:
        """See `AnswerFilter`; UPSTREAM_FAILED if there are too few rows."""
        self._count(answer)
        usage = answer.get("usage")
        self._usage.last = usage if isinstance(usage, dict) else None
        self._check()
        return False

    def _count(self, said: Mapping[str, Any]) -> None:
        self._rows += sum(_rows(choice.get("logprobs")) for choice in objects(said["choices"]))

    def _check(self) -> None:
        usage = self._usage.last
        if usage is None:
            if not self._rows:
                raise _missing("no log probabilities")
            return
        expected = 0
        if not (self._no_answer or self._hidden):
            expected = whole(usage.get("completion_tokens")) or 0
        if self._echo:
            expected += (whole(usage.get("prompt_tokens")) or 0) * self._each
        if self._rows < expected:
            raise _missing(f"{self._rows} rows of log probabilities for {expected} tokens")


def _rows(told: object) -> int:
    """Return how many tokens have a log probability; UPSTREAM_FAILED for lists of unlike lengths."""
    if not isinstance(told, dict):
        return 0
    content, tokens = told.get("content"), told.get("tokens")
    if not isinstance(tokens, list):
        return len(content) if isinstance(content, list) else 0
    values = told.get("token_logprobs")
    if not isinstance(values, list) or len(values) != len(tokens):
        raise _missing("log probabilities for some of its tokens only")
    return len(tokens)


def _missing(what: str) -> SmgError:
    return SmgError(
        ErrorKind.UPSTREAM_FAILED, f"the worker gave {what}", code=LOGPROBS_MISSING_CODE
    )
