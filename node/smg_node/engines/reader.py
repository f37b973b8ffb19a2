"""Turns the messages of one Generate stream into chunks that never repeat and never lie. Pure.

Engines agree on one thing only: the ids of a `chunk` are new. What their `complete` repeats (nothing,
the last delta, everything) differs, so its ids count only where no chunk of that choice had any:

    chunk*  complete          ids from the chunks; the complete ends the choice
            complete          an answer in one piece: ids from the complete
    chunk*            (OK)    an abort, or an engine that lost its way: a failure unless we asked for it

A choice ends once; what follows for it is late and ignored. A stream without every choice's end is a
failure, whatever its status, and so is an end nobody has heard of: an answer is never made up.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Self

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.request import Sampling
from smg_node.engines.chunk import Chunk, EngineFinish, IdLogprob
from smg_node.engines.sampling import LOGPROB_UNKNOWN
from smg_node.engines.wire import Message, Wire

REASON_MAX_CHARACTERS: Final = 64

_FINISHES: Final[dict[str, EngineFinish]] = {
    "stop": "stop",
    "length": "length",
    "stop_word": "stop_sequence",  # TensorRT-LLM
    "tool_calls": "stop",  # TokenSpeed
}


class UnknownFinishError(SmgError):
    """A choice that ended for a reason no contract names; `reason` is what the engine said, cut."""

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

    knows_runs = True
    """Whether plain chunks may be taken by the run, which `feed` then does not see."""

    def __init__(
        self,
        choices: int,
        *,
        stop_ids: Iterable[int] = (),
        logprobs: int | None = None,
        prompt_logprobs: int | None = None,
        wire: Wire | None = None,
    ) -> None:
        assert choices >= 1
        self._wire = wire
        self._stop_ids = frozenset(stop_ids)
        self._logprobs = logprobs
        self._prompt_logprobs = prompt_logprobs
        self._choices = choices
        self._had_ids = [False] * choices
        self._had_prompt = [False] * choices
        self._finished = [False] * choices
        self._open = choices
        self.aborted = False

    @classmethod
    def of(cls, sampling: Sampling, wire: Wire | None = None) -> Self:
        """Return a reader of what is answered to a request that asks so."""
        return cls(
            sampling.n,
            stop_ids=sampling.stop_token_ids,
            logprobs=sampling.logprobs,
            prompt_logprobs=sampling.prompt_logprobs,
            wire=wire,
        )

    @property
    def over(self) -> bool:
        """Whether every choice has had its end."""
        return self._open == 0

    def take(self, batch: Sequence[bytes], chunks: list[Chunk]) -> None:
        """Take one wake-up's messages as they came; append to `chunks` what is new in them.

        UPSTREAM_FAILED as from `feed` and for garbage; what is in `chunks` then came before it, and is right. One
        chunk for each message, except that plain chunks of one id each, alike in all else, are one, `apart`.
        """
        wire = self._wire
        assert wire is not None
        run = wire.chunks.run if self.knows_runs else None
        at, count = 0, len(batch)
        while at < count:
            found = run(batch, at) if run is not None else None
            if found is not None:
                ids, end, choice, prompt, cached = found
                if self._expects(choice) and ids:
                    self._had_ids[choice] = True
                    apart = end - at > 1
                    chunks.append(Chunk(choice, ids, (), None, None, prompt, cached, (), apart))
                at = end
                continue
            message = self._message(wire, batch[at])
            at += 1
            chunk = self.feed(message) if message is not None else None
            if chunk is not None:
                chunks.append(chunk)

    def _message(self, wire: Wire, data: bytes) -> Message | None:
        """Return a message that is no plain chunk."""
        ended = wire.ends.read(data)
        if ended is None:
            return wire.read(data)
        ids, choice, prompt, cached, reason, matched = ended
        return Message(choice, ids, True, reason, matched, prompt, cached)

    def feed(self, message: Message) -> Chunk | None:
        """Take the next message; return what is new in it, if anything.

        UPSTREAM_FAILED for a choice that was not asked for and for an end that is a failure.
        """
        choice = message.choice
        if not self._expects(choice):
            return None
        if message.final:
            return self._end_choice(message)
        if message.ids:
            self._had_ids[choice] = True
            if not message.logprobs and not message.prompt_logprobs:  # the hot path
                prompt, cached = message.prompt_tokens, message.cached_tokens
                return Chunk(choice, message.ids, (), None, None, prompt, cached)
        elif not message.prompt_logprobs:
            return None
        return self._chunk(message, message.ids, None)

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
        missing = [choice for choice in range(self._choices) if not self._finished[choice]]
        self._open = 0
        return [Chunk(choice=choice, ids=(), finish="abort") for choice in missing]

    def _expects(self, choice: int) -> bool:
        """Whether this choice has not had its end; UPSTREAM_FAILED for one that was not asked for."""
        if choice >= self._choices:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the engine answers choice {choice} of {self._choices}",
            )
        return not self._finished[choice]

    def _end_choice(self, message: Message) -> Chunk:
        finish = self._finish(message)
        self._finished[message.choice] = True
        self._open -= 1
        ids = () if self._had_ids[message.choice] else message.ids
        return self._chunk(message, ids, finish)

    def _finish(self, message: Message) -> EngineFinish:
        reason = message.reason
        if reason == "abort" and self.aborted:
            return "abort"
        if reason in ("abort", "error"):
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"the engine gave up on the answer ({reason})",
                code=f"upstream_{reason}",
            )
        finish = _FINISHES.get(reason)
        if finish is None:
            raise UnknownFinishError(reason)
        matched = message.matched
        if finish == "stop" and matched is not None:
            stopped_by_text = isinstance(matched, str) and matched != ""
            if stopped_by_text or matched in self._stop_ids:
                return "stop_sequence"
        return finish

    def _chunk(self, message: Message, ids: tuple[int, ...], finish: EngineFinish | None) -> Chunk:
        return Chunk(
            choice=message.choice,
            ids=ids,
            logprobs=self._wanted(message, ids),
            finish=finish,
            matched=message.matched,
            prompt_tokens=message.prompt_tokens,
            cached_tokens=message.cached_tokens,
            prompt_logprobs=self._wanted_of_prompt(message),
        )

    def _wanted(self, message: Message, ids: tuple[int, ...]) -> tuple[IdLogprob, ...]:
        if self._logprobs is None or not ids or not message.logprobs:
            return ()
        return tuple(best(one, self._logprobs) for one in aligned(ids, message.logprobs))

    def _wanted_of_prompt(self, message: Message) -> tuple[IdLogprob, ...]:
        count = self._prompt_logprobs
        if count is None or not message.prompt_logprobs or self._had_prompt[message.choice]:
            return ()
        self._had_prompt[message.choice] = True
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
