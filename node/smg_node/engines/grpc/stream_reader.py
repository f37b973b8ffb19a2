"""Stream reader: turns the messages of one Generate stream into chunks without repeats. Pure.

Engines agree on one thing only: the ids of a `chunk` are new. What their `complete` repeats (nothing,
the last delta, everything) differs, so its ids count only where no chunk of that choice had any:

    chunk*  complete          ids from the chunks; the complete ends the choice
            complete          an answer in one piece: ids from the complete
    chunk*            (OK)    an abort, or an engine that lost its way: a failure unless we asked for it

A choice ends once; what follows for it is late and ignored. A stream without every choice's end is a
failure, whatever its status, and so is an end of an unknown kind: an answer is never made up.
"""

from collections.abc import Collection, Sequence
from typing import Final, Self, TypeAlias

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import Chunk, EngineFinish, IdLogprob
from smg_node.engines.contracts.sampling_rules import LOGPROB_UNKNOWN
from smg_node.engines.contracts.wire import Message, Wire
from smg_node.native.stream_messages import ChunkReader

REASON_MAX_CHARACTERS: Final = 64

_FINISHES: Final[dict[str, EngineFinish]] = {
    "stop": "stop",
    "length": "length",
    "stop_word": "stop_sequence",  # TensorRT-LLM
    "tool_calls": "stop",  # TokenSpeed
}

_Told: TypeAlias = tuple[tuple[int, ...], int, int, int, str, int | str | None]
"""The end of a choice; see `native.stream_messages.Ended`."""


class UnknownFinishError(SmgError):
    """A choice that ended for a reason no contract names; `reason` is the engine's own text,
    cut.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason[:REASON_MAX_CHARACTERS]
        super().__init__(
            ErrorKind.UPSTREAM_FAILED, f"the engine ended the answer with {self.reason!r}"
        )


class StreamReader:
    """Reads one stream of `choices` answers.

    `stop_ids` are the request's own; `logprobs` and `prompt_logprobs` are how many alternatives were
    asked for, None for off. Set `aborted` when the request is dropped on our own wish: missing ends are
    then ends of kind `abort`. With a `wire` it can be given messages as they came.
    """

    __slots__ = (
        "_choices",
        "_finished",
        "_had_ids",
        "_had_prompt",
        "_logprobs",
        "_open",
        "_prompt_logprobs",
        "_stop_ids",
        "_wire",
        "aborted",
        "over",
    )

    def __init__(
        self,
        choices: int,
        *,
        stop_ids: Collection[int] = (),
        logprobs: int | None = None,
        prompt_logprobs: int | None = None,
        wire: Wire | None = None,
    ) -> None:
        assert choices >= 1
        self._wire = wire
        self._stop_ids = stop_ids
        self._logprobs = logprobs
        self._prompt_logprobs = prompt_logprobs
        self._choices = self._open = choices
        # One bit for each choice.
        self._had_ids = self._had_prompt = self._finished = 0
        self.aborted = self.over = False
        """`over` is whether every choice has had its end."""

    @classmethod
    def of(cls, sampling: Sampling, wire: Wire | None = None) -> Self:
        """Return a reader of the answer to this request."""
        return cls(
            sampling.n,
            stop_ids=sampling.stop_token_ids,
            logprobs=sampling.logprobs,
            prompt_logprobs=sampling.prompt_logprobs,
            wire=wire,
        )

    @property
    def plain(self) -> ChunkReader | None:
        """Reader of plain chunks, where messages come as bytes."""
        return None if self._wire is None else self._wire.chunks

    def take(self, batch: Sequence[bytes], chunks: list[Chunk]) -> None:
        """Take one wake-up's messages as they came; append to `chunks` what is new in them.

        UPSTREAM_FAILED as from `feed` and for garbage; what is in `chunks` then came before it, and is right. One
        chunk for each message, except that plain chunks of one id each, alike in all else, are one, `apart`.
        """
        wire = self._wire
        assert wire is not None
        reader, ends, choices = wire.chunks, wire.ends, self._choices
        at, count = 0, len(batch)
        while at < count:
            found = reader.run(batch, at)
            if found is None:
                message = batch[at]
                at += 1
                ended = ends.read(message)
                chunk = self._odd(wire, message) if ended is None else self._end_choice(ended)
                if chunk is not None:
                    chunks.append(chunk)
                continue
            ids, end, choice, prompt, cached = found
            if choice >= choices:
                raise self._unasked(choice)
            if ids and not self._finished >> choice & 1:
                self._had_ids |= 1 << choice
                chunks.append(Chunk(choice, ids, (), None, None, prompt, cached, (), end - at > 1))
            at = end

    def _odd(self, wire: Wire, data: bytes) -> Chunk | None:
        """Return what is new in a message that is neither a plain chunk nor a plain end."""
        message = wire.read(data)
        return self.feed(message) if message is not None else None

    def feed(self, message: Message) -> Chunk | None:
        """Take the next message; return what is new in it, if anything.

        UPSTREAM_FAILED for a choice that was not asked for and for an end that is a failure.
        """
        choice, ids = message.choice, message.ids
        prompt, cached = message.prompt_tokens, message.cached_tokens
        if message.final:
            told = (ids, choice, prompt, cached, message.reason, message.matched)
            chunk = self._end_choice(told)
            if chunk is None:
                return None
        else:
            if choice >= self._choices:
                raise self._unasked(choice)
            if self._finished >> choice & 1 or not (ids or message.prompt_logprobs):
                return None
            if ids:
                self._had_ids |= 1 << choice
            chunk = Chunk(choice, ids, (), None, message.matched, prompt, cached)
        if message.logprobs:
            chunk.logprobs = self._wanted(message, chunk.ids)
        if message.prompt_logprobs:
            chunk.prompt_logprobs = self._wanted_of_prompt(message)
        return chunk

    def end(self) -> Sequence[Chunk]:
        """Take the end of the stream with status OK; return the ends that only it tells."""
        if self.over:
            return ()
        if not self.aborted:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                "the engine ended the stream before the answer was complete",
                code="upstream_cut",
            )
        missing = [choice for choice in range(self._choices) if not self._finished >> choice & 1]
        self.over = True
        return [Chunk(choice=choice, ids=(), finish="abort") for choice in missing]

    def _unasked(self, choice: int) -> SmgError:
        return SmgError(
            ErrorKind.UPSTREAM_FAILED, f"the engine answers choice {choice} of {self._choices}"
        )

    def _end_choice(self, told: _Told) -> Chunk | None:
        """Take the end of a choice; None if it has had one."""
        ids, choice, prompt, cached, reason, matched = told
        if choice >= self._choices:
            raise self._unasked(choice)
        bit = 1 << choice
        if self._finished & bit:
            return None
        finish = _FINISHES.get(reason) or self._failed(reason)
        if matched is not None and finish == "stop":
            stopped_by_text = isinstance(matched, str) and matched != ""
            if stopped_by_text or matched in self._stop_ids:
                finish = "stop_sequence"
        self._finished |= bit
        self._open -= 1
        if not self._open:
            self.over = True
        if self._had_ids & bit:
            ids = ()
        return Chunk(choice, ids, (), finish, matched, prompt, cached)

    def _failed(self, reason: str) -> EngineFinish:
        """Return the end that an abort of ours is; UPSTREAM_FAILED for every other one that is no end of an answer."""
        if reason == "abort" and self.aborted:
            return "abort"
        if reason in ("abort", "error"):
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the engine gave up on the answer ({reason})",
                code=f"upstream_{reason}",
            )
        raise UnknownFinishError(reason)

    def _wanted(self, message: Message, ids: tuple[int, ...]) -> tuple[IdLogprob, ...]:
        if self._logprobs is None or not ids:
            return ()
        return tuple(best(one, self._logprobs) for one in aligned(ids, message.logprobs))

    def _wanted_of_prompt(self, message: Message) -> tuple[IdLogprob, ...]:
        count, bit = self._prompt_logprobs, 1 << message.choice
        if count is None or self._had_prompt & bit:
            return ()
        self._had_prompt |= bit
        return tuple(best(one, count) for one in message.prompt_logprobs)


def aligned(ids: Sequence[int], logprobs: Sequence[IdLogprob]) -> list[IdLogprob]:
    """Return one log probability for each id: servicers leave out those they do not know.

    The gaps are filled with -9999.0. What matches no id is dropped.
    """
    found: list[IdLogprob] = []
    at = 0
    for token_id in ids:
        if at < len(logprobs) and logprobs[at].token_id == token_id:
            found.append(logprobs[at])
            at += 1
        else:
            found.append(IdLogprob(token_id, LOGPROB_UNKNOWN))
    return found


def best(one: IdLogprob, count: int) -> IdLogprob:
    """Return `one` with its `count` most likely alternatives, most likely first."""
    top = one.top
    if not top:
        return one
    if len(top) > 1:
        top = tuple(sorted(top, key=lambda pair: -pair[1]))
    return IdLogprob(one.token_id, one.logprob, top[:count])
