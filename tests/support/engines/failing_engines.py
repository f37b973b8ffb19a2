"""Engines that all say the same, each id following from the ids before it, and break where a test says so."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Delta,
    Event,
    Fail,
    Finish,
    PromptEcho,
    TokenLogprob,
    Usage,
)
from smg_node.engines.chunk import Chunk, EngineFinish, IdLogprob
from smg_node.engines.engine import EngineRequest
from smg_node.engines.transport.grpc_status import CLOSED_CODE, UNREACHABLE_CODE
from support.engines.fake_engine import FakeEngine, abilities, card
from support.models.bytewise_tokenizer import EOS

SEED: Final = 1000
Raises: Final[Mapping[str, Callable[[], SmgError]]] = {
    "killed": lambda: SmgError(ErrorKind.UPSTREAM_FAILED, "unreachable", code=UNREACHABLE_CODE),
    "failed": lambda: SmgError(ErrorKind.UPSTREAM_FAILED, "the engine failed"),
    "stalled": lambda: SmgError(ErrorKind.UPSTREAM_TIMEOUT, "silent", code="upstream_stalled"),
    "removed": lambda: SmgError(ErrorKind.UPSTREAM_FAILED, "removed", code=CLOSED_CODE),
    "pressed": lambda: SmgError(ErrorKind.OVERLOADED, "full", retry_after_s=0.0),
}
SAYS: Final[Mapping[str, Chunk]] = {
    "aborted": Chunk(0, (), finish="abort"),
    "babbling": Chunk(0, (97, 9999)),
    "confused": Chunk(7, (97,)),
    "negative": Chunk(0, (-1,)),
}
KINDS: Final = (*Raises, *SAYS, "forgotten")


@dataclass(frozen=True, slots=True)
class Break:
    """A call breaks after so many of its chunks."""

    kind: str
    after: int


@dataclass
class Choir:
    """Engines that recite `texts`, one for each answer. Each call takes the next of `breaks`, if there is one."""

    texts: Sequence[bytes]
    prompt: int
    breaks: list[Break] = field(default_factory=list)
    cut: int = 1
    ended: bool = True
    """Whether end-of-text follows the texts; else only a limit ends them."""
    first_only: bool = False
    """Whether only calls break that do not go on from others."""
    broken: int = 0

    def engines(self, count: int, *, native_n: bool) -> dict[str, FakeEngine]:
        """Return so many of them, by name."""
        found = {}
        for at in range(count):
            engine = found[f"e{at}"] = FakeEngine(self.script)
            engine.abilities = replace(
                abilities(native_n=native_n), min_tokens=True, constraints=frozenset({"choice"})
            )
            engine.model_card = card(context=1000)
        return found

    async def script(self, request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Answer one call."""
        said = len(request.ids) - self.prompt
        due = self.breaks and not (self.first_only and said)
        planned = self.breaks.pop(0) if due else None
        chunks = self._chunks(request, said)
        for at, chunk in enumerate(chunks):
            if planned is not None and planned.after == at:
                self.broken += 1
                if planned.kind == "forgotten":
                    return
                if planned.kind in SAYS:
                    yield [chunk, SAYS[planned.kind]] if at % 2 else [SAYS[planned.kind]]
                raise Raises.get(planned.kind, Raises["failed"])()
            yield [chunk]

    def _chunks(self, request: EngineRequest, said: int) -> list[Chunk]:
        sampling = request.sampling
        assert sampling.seed is not None
        assert sampling.max_tokens is not None
        rows = []
        for one in range(sampling.n):
            number = one if sampling.n > 1 else sampling.seed - SEED - said
            whole = [*self.texts[number], *([EOS] if self.ended else ())]
            assert list(request.ids[self.prompt :]) == whole[:said], (
                "what was said is in the prompt"
            )
            ids = whole[said : said + sampling.max_tokens]
            assert ids, "an answer that is over is not asked for again"
            ended: EngineFinish = "stop" if said + len(ids) == len(whole) else "length"
            rows.append(self._row(one, ids, said, ended, logprobs=sampling.logprobs is not None))
        longest = max(map(len, rows))
        return [row[at] for at in range(longest) for row in rows if at < len(row)]

    def _row(
        self, one: int, ids: Sequence[int], said: int, ended: EngineFinish, *, logprobs: bool
    ) -> list[Chunk]:
        """The chunks of one answer: each position has a log probability of its own."""
        chunks = []
        for at in range(0, len(ids), self.cut):
            piece = tuple(ids[at : at + self.cut])
            told = tuple(
                IdLogprob(item, -(said + at + number) / 8) for number, item in enumerate(piece)
            )
            cached = 2 if not said else 500
            chunks.append(Chunk(one, piece, told if logprobs else (), cached_tokens=cached))
        return [*chunks, Chunk(one, (), finish=ended)]


@dataclass
class Heard:
    """What a client heard of each answer, and what it was billed."""

    texts: dict[int, str] = field(default_factory=dict)
    ids: dict[int, list[int]] = field(default_factory=dict)
    logprobs: dict[int, list[TokenLogprob]] = field(default_factory=dict)
    finishes: dict[int, Finish] = field(default_factory=dict)
    echoes: list[PromptEcho] = field(default_factory=list)
    usage: Usage | None = None
    error: SmgError | None = None


def heard(events: Sequence[Event]) -> Heard:
    """Return what a stream said, in whatever pieces."""
    found = Heard()
    for event in events:
        match event:
            case Delta():
                at = event.choice
                found.texts[at] = found.texts.get(at, "") + event.text
                found.ids.setdefault(at, []).extend(event.ids)
                found.logprobs.setdefault(at, []).extend(event.logprobs)
            case Finish():
                found.finishes[event.choice] = event
            case PromptEcho():
                found.echoes.append(event)
            case Usage():
                found.usage = event
            case Fail():
                found.error = event.error
            case _:
                pass
    found.echoes.sort(key=lambda echo: echo.choice)
    return found
