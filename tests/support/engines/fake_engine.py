"""An engine in memory: says what a test tells it to, and remembers what it was asked."""

import asyncio
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, PulledChunks
from smg_node.engines.engine import (
    Abilities,
    Contract,
    Embedded,
    EmbedRequest,
    EngineRequest,
    ModelCard,
    Prefilled,
)
from smg_node.engines.kv_events import KvBatch
from smg_node.engines.load import Load

Script = Callable[[EngineRequest], AsyncIterator[Sequence[Chunk]]]
PrefillScript = Callable[[EngineRequest], Awaitable[Prefilled]]
KvScript = Callable[[int], AsyncIterator[Sequence[KvBatch]]]


def abilities(*, native_n: bool = False, stop_strings: bool = False) -> Abilities:
    return Abilities(
        stop_strings=stop_strings,
        native_n=native_n,
        seed=True,
        min_tokens=False,
        logit_bias=True,
        logprobs_max=20,
        prompt_logprobs=False,
        constraints=frozenset(),
        adapters=False,
        penalties=True,
        loads=False,
        kv_events=False,
    )


def card(model: str = "tiny", **changes: object) -> ModelCard:
    told: dict[str, object] = {
        "contract": Contract.MLX,
        "model": model,
        "model_path": f"/models/{model}",
        "context": 64,
        "prompt_max": None,
        "vocabulary": 258,
        "eos_ids": (256,),
    }
    return ModelCard(**{**told, **changes})  # type: ignore[arg-type]  # tests name fields freely


def says(text: str, *, batch: int = 1, finish: str = "stop") -> Script:
    """Return a script that prints `text` byte by byte, `batch` ids at a time, to each answer."""

    async def run(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        assert request.sampling.max_tokens is not None
        ids = [*text.encode(), 256][: request.sampling.max_tokens]
        for at in range(0, len(ids), batch):
            yield [
                Chunk(one, tuple(ids[at : at + batch]), cached_tokens=2)
                for one in range(request.sampling.n)
            ]
            await asyncio.sleep(0)
        ended = "length" if len(ids) < len(text.encode()) + 1 else finish
        yield [Chunk(one, (), finish=ended) for one in range(request.sampling.n)]  # type: ignore[arg-type]  # a test's own word

    return run


def hands_over(prefilled: Prefilled | SmgError | None = None) -> PrefillScript:
    """Return a script that works a prompt off and says so, or says nothing but its length, or fails."""

    async def run(request: EngineRequest) -> Prefilled:
        await asyncio.sleep(0)
        if isinstance(prefilled, SmgError):
            raise prefilled
        return prefilled or Prefilled(prompt_tokens=len(request.ids), cached_tokens=0)

    return run


async def no_kv_events(start: int) -> AsyncIterator[Sequence[KvBatch]]:
    """A script for an engine that has no such RPC."""
    raise SmgError(
        ErrorKind.UPSTREAM_FAILED, "no events here", code="upstream_unimplemented", status=501
    )
    yield ()  # the language knows generators by this word


class FakeEngine:
    """One endpoint. Change its attributes while it runs; `requests` and `open` say what happened."""

    def __init__(self, script: Script | None = None, *, model: str = "tiny") -> None:
        self.contract = Contract.MLX
        self.abilities = abilities()
        self.script = script or says("hello")
        self.model_card = card(model)
        self.bundle = TokenizerBundle({"tokenizer.json": b"{}"}, "0" * 64, "a test")
        self.up = True
        self.tokenizer_error: SmgError | None = None
        self.tokenizers = 0
        """How often its tokenizer was fetched."""
        self.requests: list[EngineRequest] = []
        self.prefill_script: PrefillScript = hands_over()
        self.prefilled: list[EngineRequest] = []
        """What it was asked to work off for others."""
        self.aborted: list[str] = []
        self.embedded: list[EmbedRequest] = []
        self.embed_error: SmgError | None = None
        self.open = 0
        self.cancelled = 0
        self.closed = False
        self.looks = 0
        self.api_key: str | None = None
        self.limits_s: tuple[float, float] | None = None
        self.kv_script: KvScript = no_kv_events
        self.subscribed: list[int] = []
        """The cursors of all subscriptions so far."""
        self.listeners = 0
        self.loads_told: Sequence[Load] | SmgError = []
        self.polls = 0

    async def serving(self, timeout_s: float) -> bool:
        self.looks += 1
        return self.up

    async def healthy(self, timeout_s: float) -> bool:
        return self.up

    async def card(self, timeout_s: float) -> ModelCard:
        if not self.up:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "gone")
        return self.model_card

    async def tokenizer(self, timeout_s: float) -> TokenizerBundle:
        self.tokenizers += 1
        if self.tokenizer_error is not None:
            raise self.tokenizer_error
        return self.bundle

    async def loads(self, timeout_s: float) -> Sequence[Load]:
        self.polls += 1
        if isinstance(self.loads_told, SmgError):
            raise self.loads_told
        return self.loads_told

    async def kv_events(self, start: int) -> AsyncGenerator[Sequence[KvBatch], None]:
        self.subscribed.append(start)
        self.listeners += 1
        try:
            async for batches in self.kv_script(start):
                yield batches
        finally:
            self.listeners -= 1

    async def generate(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        self.requests.append(request)
        self.open += 1
        ended = False
        try:
            async for chunks in self.script(request):
                yield chunks
            ended = True
        finally:
            self.open -= 1
            self.cancelled += not ended

    def call(self, request: EngineRequest) -> ChunkStream:
        return PulledChunks(self.generate(request))

    async def prefill(self, request: EngineRequest) -> Prefilled:
        self.prefilled.append(request)
        self.open += 1
        ended = False
        try:
            prefilled = await self.prefill_script(request)
            ended = True
            return prefilled
        finally:
            self.open -= 1
            self.cancelled += not ended

    async def embed(self, request: EmbedRequest) -> Embedded:
        self.embedded.append(request)
        if self.embed_error is not None:
            raise self.embed_error
        return Embedded(array("f", [float(len(request.ids)), 0.5]).tobytes(), len(request.ids))

    async def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)

    def retune(self, *, first_event_s: float, stall_s: float) -> None:
        self.limits_s = (first_event_s, stall_s)

    async def close(self) -> None:
        self.closed = True
