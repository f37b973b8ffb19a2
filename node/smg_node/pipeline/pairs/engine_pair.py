"""One request on two engines, as one stream: the first one works the prompt off, the second one draws the answer.

Where partners look for each other (a room), both are called at once and the second one is silent until the KV
blocks are there. Everywhere else the first one is called, and the second one is told what came of it. Either
way nobody hears of the first one but by what it had cached and by the log probabilities of the prompt, which only
it knows: they are put into what the second one says. How the calls run, break and end says `pair_legs`.
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
    """Two engines, and how they come together.

    `host` and `port` are where the first one opens its rooms, `engine_id` is what the second one calls it by.
    `number` is of the room; or what a transfer is told from others by. Ranks are None where the engine chooses.
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
    """The two calls of one request. `prefilled` is told once, when the first engine is done."""

    by_prefill: Final = False
    """Whether the answer is the first engine's: never."""

    def __init__(self, partners: Partners, prefilled: Callable[[Prefilled], None]) -> None:
        self._partners = partners
        self._tell = prefilled
        self._found: Prefilled | None = None
        self._legs: PairCalls[Sequence[Chunk]] = PairCalls()

    @property
    def fault(self) -> Fault | None:
        """Whose fault it was that the call broke; None while it has not."""
        return self._legs.fault

    @property
    def broke(self) -> Leg | None:
        """Which of the two calls broke; None while none has."""
        return self._legs.broke

    async def chunks(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        """Yield the answer; see `Engine.generate`."""
        together = self._partners.style == "room"
        told = self._at_once(request) if together else self._in_turn(request)
        async with aclosing(told) as batches:
            async for chunks in batches:
                yield self._joined(chunks)

    def _at_once(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        partners = self._partners
        request = replace(request, room=Room(partners.host, partners.port, partners.number))
        stream = partners.decode.generate(replace(request, rank=partners.decode_rank))
        # Only the first engine can tell of the prompt's tokens.
        patient = request.sampling.prompt_logprobs is not None
        return self._legs.at_once(lambda: self._prefill(request), stream, patient=patient)

    def _in_turn(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        first = replace(request, sampling=_one_token(request.sampling))

        def decode(left_s: float) -> AsyncGenerator[Sequence[Chunk], None]:
            return self._partners.decode.generate(self._rest_of(request, left_s))

        return self._legs.in_turn(lambda: self._prefill(first), decode, timeout_s=request.timeout_s)

    def _rest_of(self, request: EngineRequest, left_s: float) -> EngineRequest:
        """Return what the second engine is asked when the first one is done."""
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
        """Return what the second engine says with what only the first one knows; its own cache is no saving."""
        found = self._found if self._found is not None else _NOTHING_YET
        for chunk in chunks:
            chunk.prompt_tokens = found.prompt_tokens
            chunk.cached_tokens = found.cached_tokens
            chunk.prompt_logprobs = found.prompt_logprobs
        return chunks


_NOTHING_YET: Final = Prefilled()


def _one_token(sampling: Sampling) -> Sampling:
    """Return the sampling of a call whose answer nobody reads: one token, whichever it is.

    Some engines hand over only what ended by its length, and look for other ends first.
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
