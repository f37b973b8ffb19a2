"""Listener of generateContent: incremental reader of a vendor's answer: bytes in, events out. Pure.

Every event of a stream is an answer of its own with the parts that are new. The last one has a reason; nothing else
says that an answer is over. Only the first candidate is read: no more are asked for. A signature belongs to the part it stands on; on an empty text, to the text before it.
Calls without an id, as most are, get one. What a vendor's servers ran by themselves is passed over.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from smg_node.core.errors import SmgError
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
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.answer_blocks import CALL_ID_MAX, AnswerBlocks
from smg_node.dialects.gemini.provider.answer_facts import (
    UsageCounts,
    broken,
    finish_of,
    is_blocked,
    reason_in,
    vendor_error,
)
from smg_node.dialects.gemini.provider.partial_arguments import PartialArguments
from smg_node.dialects.gemini.signatures import ISSUER
from smg_node.dialects.sse_reader import EventLines

_UNKNOWN_LOGPROB: Final = -9999.0
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class AnswerReader:
    """Reads one answer; see `AnswerListener`."""

    def __init__(self, begin: Begin, *, prompt_tokens: int, taken: Collection[str] = ()) -> None:
        self._begin = begin
        self._prompt_tokens = prompt_tokens
        self._lines = EventLines()
        self._candidate = _Candidate(_CallIds(begin.id, taken))
        self._counts = UsageCounts()
        self._begun = False
        self._blocked = False

    @property
    def spent(self) -> Usage | None:
        """See `AnswerListener`."""
        return self._counts.usage()

    @property
    def deltas(self) -> int:
        """See `AnswerListener`."""
        return self._candidate.deltas

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if its usage or the end of the stream is still missing."""
        return self._blocked or self._candidate.finish is not None

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream; see `AnswerListener`."""
        for event in self._lines.feed(piece):
            self._hear(event, out)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed, or is streamed as one array."""
        self._hear(body, out)

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        for event in self._lines.finish():
            self._hear(event, out)
        if not self.finished:
            raise broken("the vendor ended its answer without a reason")
        self._start(out)
        candidate = self._candidate
        candidate.close(out)
        used = self._counts.usage() or Usage(self._prompt_tokens, candidate.deltas, 0)
        if not used.prompt_tokens:
            used = msgspec.structs.replace(used, prompt_tokens=self._prompt_tokens)
        out += [Finish(0, candidate.finish or "content_filter"), used, End()]

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        self._candidate.abandon(out)
        out.append(Fail(error))

    def _start(self, out: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(self._begin)

    def _hear(self, event: bytes, out: list[Event]) -> None:
        try:
            said = _decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise broken("the vendor's answer is no JSON") from error
        for answer in said if isinstance(said, list) else (said,):
            if not isinstance(answer, dict):
                raise broken("the vendor's answer is no object of JSON")
            self._take(answer, out)

    def _take(self, answer: Mapping[str, Any], out: list[Event]) -> None:
        error = vendor_error(answer)
        if error is not None:
            raise error
        self._counts.take(answer)
        self._blocked = self._blocked or is_blocked(answer)
        for candidate in objects(answer.get("candidates")):
            if not candidate.get("index"):
                if speaks(candidate):
                    self._start(out)
                self._candidate.take(candidate, out)


class _CallIds:
    """Ids of calls: the vendor's own where it has a usable one."""

    def __init__(self, answer_id: str, taken: Collection[str]) -> None:
        self._answer_id = answer_id
        self._taken = set(taken)
        self._made = 0

    def of(self, theirs: str) -> str:
        """Return the id of a call that the vendor calls so, "" for nothing."""
        while not 0 < len(theirs) <= CALL_ID_MAX or theirs in self._taken:
            theirs = f"call_{self._answer_id[:32]}_{self._made}"
            self._made += 1
        self._taken.add(theirs)
        return theirs


class _Candidate:
    """The candidate that is read: its blocks, and why it ended."""

    def __init__(self, ids: _CallIds) -> None:
        self.finish: FinishReason | None = None
        self._ids = ids
        self._blocks = AnswerBlocks()
        self._calls = 0
        self._partial: _PartialCall | None = None

    @property
    def deltas(self) -> int:
        """How many there were."""
        return self._blocks.deltas

    def take(self, candidate: Mapping[str, Any], out: list[Event]) -> None:
        """Take what an event says of it."""
        rows = _rows(candidate.get("logprobsResult"))
        for part in _parts(candidate):
            rows = self._part(part, rows, out)
        if rows:
            self._blocks.say("text", "", out, rows)
        reason = reason_in(candidate)
        if reason:
            self._settle(out)
            self.finish = finish_of(reason, called=self._calls > 0)

    def close(self, out: list[Event]) -> None:
        """End the open block."""
        self._settle(out)
        self._blocks.close(out)

    def abandon(self, out: list[Event]) -> None:
        """End the open block, because nothing more comes."""
        self._blocks.abandon(out)

    # ── Parts ────────────────────────────────────────────────────────────────

    def _part(
        self, part: Mapping[str, Any], rows: tuple[TokenLogprob, ...], out: list[Event]
    ) -> tuple[TokenLogprob, ...]:
        """Take a part; return those of the log probabilities that are still to be told."""
        call = part.get("functionCall")
        signature = text_in(part.get("thoughtSignature"))
        if call is not None:
            self._call(object_in(call), _signed(signature), out)
            return rows
        self._settle(out)
        said = part.get("text")
        if said is None and not signature:
            # What is run by the vendor's servers, or drawn: text behind it is another block.
            if part:
                self._blocks.end(out)
            return rows
        if said is None and len(part) > 1 + ("thought" in part):
            # It stands on something that goes to nobody.
            self._blocks.end(out)
            return rows
        kind: Literal["text", "reasoning"] = "reasoning" if part.get("thought") is True else "text"
        text = text_in(said)
        told = rows if text and kind == "text" else ()
        self._blocks.say(kind, text, out, told)
        if signature:
            self._blocks.attach(kind, Opaque(ISSUER, SIGNATURE, signature), out)
            self._blocks.end(out)
        return () if told else rows

    def _call(self, call: Mapping[str, Any], opaque: tuple[Opaque, ...], out: list[Event]) -> None:
        name = text_in(call.get("name"))
        open_call = self._partial
        if name or open_call is None:
            self._settle(out)
            args = call.get("args")
            started = PartialArguments({} if args is None else object_in(args))
            open_call = _PartialCall(name, text_in(call.get("id")), started)
        open_call.opaque += opaque
        for piece in objects(call.get("partialArgs")):
            open_call.arguments.take(piece)
        self._partial = open_call
        if call.get("willContinue") is not True:
            self._settle(out)

    def _settle(self, out: list[Event]) -> None:
        """Tell the call that was being put together, if there is one: it is whole."""
        call, self._partial = self._partial, None
        if call is None:
            return
        if not call.name:
            raise broken("the vendor called a function without its name")
        call_id = self._ids.of(call.call_id)
        arguments = _encode(call.arguments.joined).decode()
        self._blocks.call(self._calls, call_id, call.name, arguments, out, call.opaque)
        self._calls += 1


class _PartialCall:
    """A call that is being put together."""

    __slots__ = ("arguments", "call_id", "name", "opaque")

    def __init__(self, name: str, call_id: str, arguments: PartialArguments) -> None:
        self.name = name
        self.call_id = call_id
        self.arguments = arguments
        self.opaque: tuple[Opaque, ...] = ()


def speaks(candidate: Mapping[str, Any]) -> bool:
    """Whether there is something of the answer in an event."""
    return any(
        part.get("text") or part.get("thoughtSignature") or part.get("functionCall") is not None
        for part in _parts(candidate)
    )


# ── Values, whatever they are ────────────────────────────────────────────────


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects, an empty one for null; UPSTREAM_FAILED for anything else."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise broken("the vendor's answer has something else where a list of objects belongs")
    return value


def object_in(value: object) -> Mapping[str, Any]:
    """Return an object, an empty one for null; UPSTREAM_FAILED for anything else."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise broken("the vendor's answer has something else where an object belongs")
    return value


def text_in(value: object) -> str:
    """Return text, "" for null; UPSTREAM_FAILED for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise broken("the vendor's answer has something else where text belongs")
    return value


def _parts(candidate: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return objects(object_in(candidate.get("content")).get("parts"))


def _signed(signature: str) -> tuple[Opaque, ...]:
    return (Opaque(ISSUER, SIGNATURE, signature),) if signature else ()


def _rows(told: object) -> tuple[TokenLogprob, ...]:
    """Return log probabilities: the tokens drawn, each with the best alternatives at its place."""
    if not isinstance(told, dict):
        return ()
    tops = objects(told.get("topCandidates"))
    return tuple(
        TokenLogprob(
            *_token(row),
            tuple(
                TopLogprob(*_token(top))
                for top in objects(tops[at].get("candidates") if at < len(tops) else None)
            ),
        )
        for at, row in enumerate(objects(told.get("chosenCandidates")))
    )


def _token(row: Mapping[str, Any]) -> tuple[int, str, bytes, float]:
    token, token_id, logprob = (
        text_in(row.get("token")),
        row.get("tokenId"),
        row.get("logProbability"),
    )
    known = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    return (
        token_id if type(token_id) is int and token_id >= 0 else 0,
        token,
        token.encode(),
        float(logprob) if known and isinstance(logprob, int | float) else _UNKNOWN_LOGPROB,
    )
