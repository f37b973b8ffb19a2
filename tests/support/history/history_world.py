"""History over a store in memory, and generations that follow a script."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, Prompt, Turn
from smg_node.core.request_context import RequestContext
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.peers.peer_interface import NoPeers
from smg_node.history.ports import Direct, HistoryOptions, Keeper, Kept, Measure
from smg_node.history.runs.background_run import Pace
from smg_node.history.runs.run_registry import RegisteredRuns
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.history_service import HistoryService
from smg_node.history.service.resumed_streams import ResumedStreams
from smg_node.history.turns.quotas import Quotas
from smg_node.history.turns.response_run import ResponseRun
from smg_node.pipeline.generation.run_interface import Generations
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.no_store import open_store as open_nothing
from smg_storage.options import Bounds, StoreOptions
from smg_storage.records import Access
from smg_storage.records import Turn as StoredTurn
from smg_storage.store import HistoryStore
from smg_storage.url import parse_store_url
from support.http.http_node import FakeGenerations, FakeRun, Script


def block(number: int, kind: BlockKind, text: str, *pieces: str, **named: Any) -> list[Event]:
    """Return one whole block, in these deltas."""
    deltas: list[Event] = [Delta(0, number, piece, 1) for piece in pieces or (text,)]
    return [
        BlockStart(0, number, kind, **named),
        *deltas,
        BlockEnd(0, number, kind, text, **named),
    ]


def begin() -> Begin:
    return Begin("1", "m", 1, 3)


def finish(reason: FinishReason = "stop") -> list[Event]:
    return [Finish(0, reason), Usage(3, 2, 1), End()]


def lines_of(prompt: Prompt) -> list[str]:
    """Return a prompt as one line a turn: who, and what was said, thought or called."""
    assert isinstance(prompt, ChatPrompt)
    return [line_of(turn) for turn in prompt.turns]


def line_of(turn: Turn) -> str:
    text = turn.content if isinstance(turn.content, str) else ""
    if isinstance(turn.content, tuple):
        text = "".join(getattr(part, "text", "") for part in turn.content)
    thought = [f"<{turn.reasoning}>"] if turn.reasoning else []
    calls = [f"{call.name}({call.arguments})" for call in turn.calls]
    return " ".join([f"{turn.role}:", *thought, *([text] if text else []), *calls])


async def counting(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Say how many turns the prompt has, in two events."""
    text = f"turns {len(lines_of(run.request.prompts[0]))}"
    yield [begin(), BlockStart(0, 0, "text"), Delta(0, 0, text[:3], 1)]
    yield [Delta(0, 0, text[3:], 1), BlockEnd(0, 0, "text", text), *finish()]


async def calling(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Think, and call a function as long as it has not answered."""
    if lines_of(run.request.prompts[0])[-1].startswith("tool:"):
        yield [begin(), *block(0, "text", "It rains."), *finish()]
        return
    yield [begin(), *block(0, "reasoning", "I must look.")]
    call = block(1, "call", '{"city":"Paris"}', name="weather", call_id="call_1")
    yield [*call, *finish("tool_calls")]


async def cut_short(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Reach the limit in the middle of a call."""
    call = block(0, "call", '{"ci', name="weather", call_id="call_cut")
    yield [begin(), *call, *finish("length")]


def broken() -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")


async def failing(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Break before anything is said."""
    yield [Fail(broken())]


async def failing_late(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Say one thing, and break in the middle of the next."""
    yield [begin(), *block(0, "reasoning", "hm"), BlockStart(0, 1, "text"), Delta(0, 1, "so", 1)]
    yield [BlockEnd(0, 1, "text", "so"), Fail(broken())]


class WordMeasure:
    """Counts words, and one more for each turn."""

    def __init__(self, context: int | None) -> None:
        self.name = "m"
        self.context = context
        self.asked: list[int] = []

    def check(self, where: str) -> None:
        """Return: words can be counted."""

    async def count(self, prompt: Prompt) -> int:
        tokens = sum(len(line.split()) for line in lines_of(prompt))
        self.asked.append(tokens)
        return tokens


class WordMeasures:
    def __init__(self, context: int | None) -> None:
        self.measure = WordMeasure(context)

    async def of(self, model: str, *, deadline_s: float) -> Measure:
        if model != "m":
            raise SmgError(ErrorKind.NOT_FOUND, f"no model {model!r}", code="model_not_found")
        return self.measure


class PlainVault:
    """Seals with a mark that stands for a key."""

    def __init__(self, key: bytes = b"k") -> None:
        self.key = key

    def seal(self, secret: str) -> bytes:
        return self.key + secret.encode()

    def open_secret(self, sealed: bytes) -> str | None:
        return sealed[1:].decode() if sealed[:1] == self.key else None


class TickingClock:
    """Each look at it is a millisecond later."""

    def __init__(self) -> None:
        self.ms = 1_760_000_000_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000


class WilfulKeeper:
    """Commits as long as nobody told it otherwise, and remembers every turn."""

    def __init__(self, store: HistoryStore) -> None:
        self._inner = Direct(store)
        self.store: HistoryStore = store
        self.turns: list[StoredTurn] = []
        self.accesses: list[Access] = []
        self.refusal: StoreErrorKind | None = None
        self.spools = False
        self.full = False

    def check_can_keep(self) -> None:
        if self.full:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "the spool is full")

    async def write(self, access: Access, turn: StoredTurn) -> Kept:
        return await self._inner.write(access, turn)

    async def commit(self, access: Access, turn: StoredTurn) -> Kept:
        self.turns.append(turn)
        self.accesses.append(access)
        if self.refusal is not None:
            raise StoreError(self.refusal, "not today", missing="conv_gone")
        if self.spools:
            return Kept(spooled=True)
        return await self._inner.commit(access, turn)


@dataclass
class HistoryWorld:
    """A desk, its store, and everything that was generated."""

    keeper: WilfulKeeper
    generations: FakeGenerations
    measures: WordMeasures
    desks: HistoryService
    vault: PlainVault
    runs: RegisteredRuns
    resumed: ResumedStreams
    access: Access = field(default_factory=lambda: Access(tenant="acme"))

    def prompt(self, number: int = -1) -> list[str]:
        """Return a prompt that was generated from."""
        return lines_of(self.generations.runs[number].request.prompts[0])

    async def create(self, access: Access | None = None, **body: Any) -> ResponseRun:
        """Return a response that has not begun."""
        return await self.desks.responses.create(
            ask_of(**body), context(), self.access if access is None else access
        )

    async def answer(self, access: Access | None = None, **body: Any) -> str:
        """Make a response to its end; return its id. What it fails with is raised."""
        run = await self.create(access, **body)
        async for _ in run.told():
            pass
        if run.failure is not None:
            raise run.failure
        return run.id

    async def conversation(self, *items: Any) -> str:
        """Return the id of a new conversation."""
        import msgspec

        read = ask_of(input=list(items)).items if items else ()
        made = await self.desks.conversations.create(self.access, read, b"{}")
        return str(msgspec.json.decode(made)["id"])


def ask_of(**body: Any) -> ResponseRequest:
    return ResponsesReader(ReaderOptions()).read({"model": "m", **body})


def context() -> RequestContext:
    return RequestContext("req_1", 0.0, 1e9)


def history_world(
    script: Script = counting,
    *,
    options: HistoryOptions | None = None,
    model_context: int | None = None,
    store: HistoryStore | None = None,
    generations: Generations | None = None,
    chain_depth: Callable[[int], None] = lambda depth: None,
    named: Callable[[str, str], None] = lambda response_id, request_id: None,
    pace: Pace | None = None,
    seed: int = 5,
) -> HistoryWorld:
    clock, rng = TickingClock(), random.Random(seed)
    made = FakeGenerations(script)
    kept = WilfulKeeper(MemoryStore(Bounds(), lambda: clock.ms * 1000) if store is None else store)
    measures, vault = WordMeasures(model_context), PlainVault()
    keeper: Keeper = kept
    chosen = HistoryOptions() if options is None else options
    runs = RegisteredRuns(keeper, chosen, owner="n1/0000000a", clock=clock, rng=rng, pace=pace)
    resumed = ResumedStreams(runs.owner, NoPeers().known)
    parts = HistoryParts(
        keeper=keeper,
        generations=made if generations is None else generations,
        measures=measures,
        vault=vault,
        clock=clock,
        rng=rng,
        options=chosen,
        runs=runs,
        resumed=resumed,
        quotas=Quotas(keeper, now_s=clock.monotonic_s, options=chosen),
        chain_depth=chain_depth,
        named=named,
    )
    return HistoryWorld(kept, made, measures, HistoryService(parts), vault, runs, resumed)


class CountingStore:
    """Counts what is asked of a store."""

    def __init__(self, store: HistoryStore) -> None:
        self._store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if callable(found):
            self.asked.append(name)
        return found


def no_store() -> HistoryStore:
    return open_nothing(parse_store_url("none:"), StoreOptions(), lambda: 0)


def question(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}
