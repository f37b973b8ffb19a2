"""Listener: incremental reader of a worker's Chat Completions answer: bytes in, events out. Pure.

The worker has rendered, sampled and parsed by itself; its text is not parsed again. No event is
emitted before the first output, so that a worker that fails earlier can be retried. An answer is
whole when its choice has finished, even if the connection breaks then. A value that cannot be read
is an error, because dropping it could drop a part of the answer; unknown keys are ignored.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.openai.logprobs import CONTENT, THOUGHT
from smg_node.dialects.sse_reader import EventLines
from smg_node.dialects.worker_errors import error_of
from smg_node.dialects.worker_usage import usage_in, worker_usage

_DONE: Final = b"[DONE]"
_REASONS: Final[Mapping[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
NO_REASONS: Final = frozenset({"abort", "cancelled", "error", "insufficient_system_resource"})
"""What servers say of an answer that they gave up."""
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class ChunkReader:
    """Reads one answer. `begin` is emitted before its first output; `taken` are ids of earlier tool
    calls.

    `out` of any method takes the events. A method that raises has put in those that came before the
    error.
    """

    def __init__(self, begin: Begin, *, prompt_tokens: int, taken: Collection[str] = ()) -> None:
        """Take an estimate of the prompt's tokens, used if the worker gives no usage."""
        self._begin = begin
        self._prompt_tokens = prompt_tokens
        self._lines = EventLines()
        self._blocks = AnswerBlocks(taken)
        self._begun = False
        self._done = False
        self._finish: Finish | None = None
        self._usage: Usage | None = None

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if its usage or the end of the stream is still missing."""
        return self._finish is not None

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream. UPSTREAM_FAILED for bytes that are no answer;
        `WorkerError`.
        """
        for event in self._lines.feed(piece):
            self._hear(event, out)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed; errors as `feed`."""
        self._hear(body, out)

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        for event in self._lines.finish():
            self._hear(event, out)
        finish = self._finish
        if finish is None:
            raise _broken("the worker ended its answer without a reason")
        self._start(out)
        self._blocks.close(out)
        used = self._usage or Usage(self._prompt_tokens, self._blocks.deltas, 0)
        out += [finish, used, End()]

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        self._blocks.abandon(out)
        out.append(Fail(error))

    # ── One chunk ────────────────────────────────────────────────────────────

    def _hear(self, event: bytes, out: list[Event]) -> None:
        if self._done:
            return
        if event.strip() == _DONE:
            self._done = True
            return
        try:
            chunk = _decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _broken("the worker's answer is no JSON") from error
        if not isinstance(chunk, dict):
            raise _broken("the worker's answer is no object of JSON")
        said = error_of(chunk)
        if said is not None:
            raise said
        self._usage = _usage(usage_in(chunk)) or self._usage
        for choice in _objects(chunk.get("choices")):
            if not choice.get("index"):
                self._choose(choice, out)

    def _choose(self, choice: Mapping[str, Any], out: list[Event]) -> None:
        told = choice.get("logprobs")
        rows = (_rows(told, CONTENT), _rows(told, THOUGHT))
        said = choice.get("delta")
        said = choice.get("message") if said is None else said
        if isinstance(said, dict):
            self._tell(said, rows, out)
        reason = choice.get("finish_reason")
        if not reason:
            return
        if not isinstance(reason, str) or reason in NO_REASONS:
            raise _broken("the worker gave up in the middle of its answer")
        matched = choice.get("stop_reason", choice.get("matched_stop"))
        if not isinstance(matched, str | int) or isinstance(matched, bool):
            matched = None
        self._finish = Finish(0, _REASONS.get(reason, "stop"), matched)

    def _tell(
        self,
        said: Mapping[str, Any],
        rows: tuple[tuple[TokenLogprob, ...], tuple[TokenLogprob, ...]],
        out: list[Event],
    ) -> None:
        thought = _text(said.get("reasoning_content")) or _text(said.get("reasoning"))
        text = _text(said.get("content")) + _text(said.get("refusal"))
        calls = _objects(said.get("tool_calls"))
        if thought or text or calls:
            self._start(out)
        # What a chunk says of both is rare, and most servers have one list for them: then text has it.
        of_text, of_thought = rows
        if thought:
            self._blocks.say("reasoning", thought, out, of_thought or (() if text else of_text))
        if text or not thought:
            self._blocks.say("text", text, out, of_text)
        for call in calls:
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            self._blocks.call(
                _number(call.get("index")),
                _text(call.get("id")),
                _text(function.get("name")),
                _arguments(function.get("arguments")),
                out,
            )

    def _start(self, out: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(self._begin)


# ── Values, whatever they are ────────────────────────────────────────────────


def _objects(value: object) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects; an empty one for null."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _broken("the worker's answer has something else where a list of objects belongs")
    return value


def _text(value: object) -> str:
    """Return text, also from a list of parts; "" for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    parts = _objects(value) if isinstance(value, list) else None
    if parts is None:
        raise _broken("the worker's answer has something else where text belongs")
    return "".join(_text(part.get("text")) for part in parts)


def _arguments(value: object) -> str:
    """Return arguments as text; some servers send them as an object."""
    return _encode(value).decode() if isinstance(value, dict) else _text(value)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _usage(told: Mapping[str, Any] | None) -> Usage | None:
    if told is None:
        return None
    used = worker_usage(told)
    if not (used.prompt or used.answer):
        return None
    return Usage(used.prompt, used.answer, used.cached, used.thought)


def _rows(told: object, name: str) -> tuple[TokenLogprob, ...]:
    """Return the log probabilities of a list, without token ids, which workers do not send."""
    content = told.get(name) if isinstance(told, dict) else None
    if not isinstance(content, list):
        return ()
    return tuple(
        TokenLogprob(
            0,
            _text(row.get("token")),
            _raw(row),
            _logprob(row),
            tuple(
                TopLogprob(0, _text(top.get("token")), _raw(top), _logprob(top))
                for top in _objects(row.get("top_logprobs"))
            ),
        )
        for row in _objects(content)
    )


def _raw(row: Mapping[str, Any]) -> bytes:
    said = row.get("bytes")
    if isinstance(said, list) and all(type(one) is int and 0 <= one < 256 for one in said):
        return bytes(said)
    return _text(row.get("token")).encode()


def _logprob(row: Mapping[str, Any]) -> float:
    value = row.get("logprob")
    return float(value) if isinstance(value, int | float) else -9999.0


def _broken(message: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)
