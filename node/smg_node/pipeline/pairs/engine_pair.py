"""Engine pair: a prefill engine and a decode engine called as one stream (disaggregated serving).

Engines that meet in a room (bootstrap) are both called at once, and the decode engine is silent
until the KV blocks are there. All others are called in turn: the prefill engine first, and its
result goes into the request of the decode engine. Either way the prefill engine adds only its
cached tokens and the log probabilities of the prompt to the answer: they are put into the decode
engine's chunks. See `pair_calls` for how the calls run, break and end.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import Chunk
from smg_node.engines.contracts import kv_transfer as transfer
from smg_node.engines.disaggregation import Room, Style
from smg_node.engines.engine import Engine, EngineRequest, Prefilled
from smg_node.pipeline.pairs.pair_calls import Fault, Leg, PairCalls


@dataclass(frozen=True, slots=True)
class Partners:
    """Two engines, and how they hand over.

    `host` and `port` are where the prefill engine opens its rooms, `engine_id` is its name for the
    decode engine. `number` is the room's, or identifies a transfer. Ranks are None where the engine
    chooses.
    """

    prefill: Engine
    decode: Engine
    style: Style
    host: str
    port: int
    number: int
    engine_id: str = ""
    prefill_rank: int | None = None
    decode_rank: int | None = None


class PairCall:
    """The two calls of one request. `prefilled` is called once, when the prefill engine is done."""

    by_prefill: Final = False
    """Whether the answer is the first engine's: never."""

    def __init__(self, partners: Partners, prefilled: Callable[[Prefilled], None]) -> None:
        self._partners = partners
        self._tell = prefilled
        self._found: Prefilled | None = None
        self._legs: PairCalls[Sequence[Chunk]] = PairCalls()

    @property
    def fault(self) -> Fault | None:
        """Leg that caused the failure; None while there is none."""
        return self._legs.fault

    @property
    def broke(self) -> Leg | None:
        """Which of the two calls broke; None while none has."""
        return self._legs.broke

    async def chunks(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        """Yield the answer; see `Engine.generate`."""
        together = self._partners.style == "room"
        told = self._at_once(request) if together else self._in_turn(request)
        # Its pictures are not to stay as long as the answer takes.
        del request
        async with aclosing(told) as batches:
            async for chunks in batches:
                yield self._joined(chunks)

    def _at_once(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        partners = self._partners
        request = replace(request, room=Room(partners.host, partners.port, partners.number))
        # Pictures that others encode are handed to the first engine only.
        answered = replace(request, rank=partners.decode_rank, rooms=())
        stream = partners.decode.generate(answered)
        # Only the first engine can tell of the prompt's tokens.
        patient = request.sampling.prompt_logprobs is not None
        return self._legs.at_once(lambda: self._prefill(request), stream, patient=patient)

    def _in_turn(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        first = replace(request, sampling=_one_token(request.sampling))

        def decode(left_s: float) -> AsyncGenerator[Sequence[Chunk], None]:
            return self._partners.decode.generate(self._rest_of(request, left_s))

        return self._legs.in_turn(lambda: self._prefill(first), decode, timeout_s=request.timeout_s)

    def _rest_of(self, request: EngineRequest, left_s: float) -> EngineRequest:
        """Return the request to the decode engine once the prefill engine is done."""
        partners, found = self._partners, self._found
        assert found is not None
        told = transfer.of_decode(
            partners.style,
            partners.number,
            engine_id=partners.engine_id,
            host=partners.host,
            port=partners.port,
            found=found.transfer,
        )
        return replace(
            request,
            timeout_s=left_s,
            transfer=told,
            rank=partners.decode_rank,
            # Only the first engine can tell.
            sampling=replace(request.sampling, prompt_logprobs=None),
        )

    async def _prefill(self, request: EngineRequest) -> None:
        partners = self._partners
        told = transfer.of_prefill(partners.style, partners.number)
        asked = replace(request, transfer=told, rank=partners.prefill_rank)
        self._found = found = await partners.prefill.prefill(asked)
        self._tell(found)

    def _joined(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        """Return the decode engine's chunks with the prefill engine's figures; its own cache is no
        saving.
        """
        found = self._found if self._found is not None else _NOTHING_YET
        for chunk in chunks:
            chunk.prompt_tokens = found.prompt_tokens
            chunk.cached_tokens = found.cached_tokens
            chunk.prompt_logprobs = found.prompt_logprobs
        return chunks


_NOTHING_YET: Final = Prefilled()


def _one_token(sampling: Sampling) -> Sampling:
    """Return the sampling of the prefill call, whose answer is not read: one token, whichever it
    is.

    Some engines hand over only what ended by its length, and check other ends first.
    """
    return replace(
        sampling,
        n=1,
        max_tokens=1,
        min_tokens=min(1, sampling.min_tokens),
        stop=(),
        stop_token_ids=(),
        ignore_eos=True,
        logprobs=None,
        constraint=None,
    )
