"""Answer guard: which requests are changed for their worker, and what then filters its answer.

Nothing is looked at of a request without stop strings and without rows for scorers.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.parsers.selection.model_names import formats_of_name
from smg_node.pipeline.relay.filters.answer_filter import AnswerFilter
from smg_node.pipeline.relay.filters.answer_stops import ThoughtWatch, WithheldStops
from smg_node.pipeline.relay.filters.scored_rows import ScoredRows
from smg_node.pipeline.relay.filters.streamed_usage import StreamedUsage
from smg_node.pipeline.relay.filters.thought_rows import ThoughtRows
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_request import Relayable

KEEPS: Final = ("include_stop_str_in_output", "no_stop_trim")
_STOP: Final = ("stop",)
_PLAIN: Final = ("", "plain", "none")
"""What is said of a model that does not think."""
_UNPACKED: Final = ("", "identity")


Pieces: TypeAlias = AsyncGenerator[Head | bytes, None]


@dataclass(frozen=True, slots=True)
class Guard:
    """The request that the worker is sent, and the filter of its answer."""

    asked: Relayable
    through: AnswerFilter | None = None

    def passed(self, pieces: Pieces) -> Pieces:
        """Return an answer as it leaves the filter."""
        return pieces if self.through is None else _filtered(pieces, self.through)


def guard_of(asked: Relayable, engine: HttpEngine, model: RelayedModel, *, thinks: bool) -> Guard:
    """Return how this worker is asked. `thinks`: stop strings may have ended a thought for this request."""
    fields = asked.fields
    if asked.api.name == "completions":
        rows = fields.get("logprobs")
        if rows is None or rows is False:
            return Guard(asked)
        usage = StreamedUsage(fields)
        return Guard(asked.changed(usage.more(continuous=False)), ScoredRows(fields, usage))
    strings = _strings(fields) if asked.api.name == "chat" else ()
    if not strings:
        rows = asked.api.name == "chat" and fields.get("logprobs") is True
        return Guard(asked, ThoughtRows() if rows else None)
    if not (thinks or engine.thinks or _known_to_think(engine, model)):
        return Guard(asked, ThoughtWatch())
    usage = StreamedUsage(fields)
    keep = any(fields.get(name) is True for name in KEEPS)
    through = WithheldStops(strings, keep=keep, answers=asked.answers, usage=usage)
    return Guard(asked.changed(usage.more(continuous=True), without=_STOP), through)


def _strings(fields: Mapping[str, Any]) -> Sequence[str]:
    """Return the stop strings; none where they are no strings, which the worker says itself."""
    said = fields.get("stop")
    strings = [said] if isinstance(said, str) else said
    if not isinstance(strings, list) or not all(isinstance(one, str) and one for one in strings):
        return ()
    return tuple(dict.fromkeys(strings))


def _known_to_think(engine: HttpEngine, model: RelayedModel) -> bool:
    said = model.settings.reasoning_parser
    if said is not None:
        return said.lower() not in _PLAIN
    names = (engine.served_name, model.name)
    return any(formats_of_name(name)[0] not in _PLAIN for name in names)


async def _filtered(pieces: Pieces, through: AnswerFilter) -> Pieces:
    """Yield an answer as it leaves the filter: its head with the first of it, a body in one piece."""
    async with aclosing(pieces):
        head = await anext(pieces, None)
        if head is None:
            return
        assert isinstance(head, Head), "an answer begins with its head"
        if head.headers.get("content-encoding", "") not in _UNPACKED:
            yield head
            async for piece in pieces:
                yield piece
        elif head.events:
            async for piece in _stream(head, pieces, through):
                yield piece
        else:
            async for piece in _body(head, pieces, through):
                yield piece


async def _stream(head: Head, pieces: Pieces, through: AnswerFilter) -> Pieces:
    said = False
    async for piece in pieces:
        assert isinstance(piece, bytes), "an answer has one head"
        passed = through.feed(piece)
        if passed and not said:
            said = True
            yield head
        if passed:
            yield passed
        if through.over:
            return
    rest = through.finish()
    if not said:
        yield head
    if rest:
        yield rest


async def _body(head: Head, pieces: Pieces, through: AnswerFilter) -> Pieces:
    kept, size = list[bytes](), 0
    async for piece in pieces:
        assert isinstance(piece, bytes), "an answer has one head"
        kept.append(piece)
        size += len(piece)
        if size > through.whole_max_bytes:
            break
    else:
        body = through.body(b"".join(kept))
        yield replace(head, whole=True)
        yield body
        return
    if through.needed:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED,
            f"the worker's answer has more than {through.whole_max_bytes} bytes",
        )
    yield replace(head, whole=False)
    yield b"".join(kept)
    async for piece in pieces:
        yield piece
