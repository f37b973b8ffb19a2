"""Two calls as one stream, at every order in which they may speak, end and break."""

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import PulledChunks, pulled
from smg_node.engines.disaggregation import Style
from smg_node.engines.engine import EngineRequest, Prefilled
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.media.engine_media import EncodedBatch
from smg_node.pipeline.pairs import pair_calls as pair_legs
from smg_node.pipeline.pairs.engine_pair import PairCall, Partners
from smg_node.pipeline.pairs.pair_calls import Fault, fault_of
from support.engines.fake_engine import FakeEngine
from support.tools.cancellation import after_turns, interrupt

STYLES: tuple[Style, ...] = ("room", "nixl", "minted", "store")
Errors = Callable[[], SmgError]
NEVER = 1 << 60
"""So many turns take longer than any patience, however fast the machine is."""


def failed(code: str, kind: ErrorKind = ErrorKind.UPSTREAM_FAILED) -> SmgError:
    return SmgError(kind, code, code=code)


def gone() -> SmgError:
    return failed(UNREACHABLE_CODE)


def aborted() -> SmgError:
    return failed("upstream_abort")


def silent() -> SmgError:
    return failed("first_event_timeout", ErrorKind.UPSTREAM_TIMEOUT)


def full() -> SmgError:
    return SmgError(ErrorKind.OVERLOADED, "full", retry_after_s=1.0)


@dataclass
class Pair:
    """Two engines that do what they are told, after so many turns of the loop."""

    style: Style
    prefill_after: int = 1
    prefill_error: Errors | None = None
    decode_after: int = 3
    decode_error: Errors | None = None
    letters: str = "abc"
    breaks_after: int | None = None
    told: list[Prefilled] = field(default_factory=list)
    spoken: int = 0

    def __post_init__(self) -> None:
        self.p, self.d = FakeEngine(), FakeEngine()
        self.p.prefill_script, self.d.script = self._prefill, self._decode
        self.call = PairCall(
            Partners(self.p, self.d, self.style, "host", 8998, 5, "e1", 0, 1), self.told.append
        )

    async def _prefill(self, request: EngineRequest) -> Prefilled:
        await _turns(self.prefill_after)
        if self.prefill_error is not None:
            raise self.prefill_error()
        return Prefilled(4, 2, (), '{"block":1}' if self.style == "nixl" else "")

    async def _decode(self, request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        await _turns(self.decode_after)
        if self.decode_error is not None:
            raise self.decode_error()
        for at, letter in enumerate(self.letters):
            if at == self.breaks_after:
                raise gone()
            self.spoken += 1
            yield [Chunk(0, (ord(letter),), cached_tokens=77, prompt_tokens=88)]
        yield [Chunk(0, (), finish="stop")]

    async def read_one(self) -> None:
        """Leave after the first chunk, as a receiver whose client has gone does."""
        request = EngineRequest("r", token_ids([1, 2, 3, 4]), Sampling(max_tokens=9), True, 5.0)
        async with aclosing(self.call.chunks(request)) as batches:
            await anext(batches)

    async def read_all(self) -> None:
        """Read to the end."""
        await self.read()

    async def read(self) -> list[Chunk]:
        request = EngineRequest("r", token_ids([1, 2, 3, 4]), Sampling(max_tokens=9), True, 5.0)
        found: list[Chunk] = []
        async with aclosing(self.call.chunks(request)) as batches:
            async for chunks in batches:
                found += chunks
        return found


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_legs, "HANDOVER_S", 0.02)
    monkeypatch.setattr(pair_legs, "BLAME_S", 0.02)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STYLES), st.integers(0, 12), st.integers(0, 12))
async def test_whoever_is_first_the_answer_is_the_second_ones(
    style: Style, prefill_after: int, decode_after: int
) -> None:
    two = Pair(style, prefill_after=prefill_after, decode_after=decode_after)
    found = await two.read()
    assert [one for chunk in found for one in chunk.ids] == list(b"abc")
    assert found[-1].finish == "stop"
    # The second engine's own cache is no saving; the first one's is known at the end at the latest.
    assert {chunk.cached_tokens for chunk in found} <= {-1, 2}
    assert found[-1].cached_tokens == 2 or prefill_after > decode_after
    assert two.told == [Prefilled(4, 2, (), '{"block":1}' if style == "nixl" else "")]
    assert two.call.fault is None
    assert (two.p.open, two.d.open) == (0, 0)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("error", "fault"),
    [(gone, "prefill"), (full, "prefill"), (silent, "prefill"), (aborted, None)],
)
async def test_what_breaks_the_first_call_breaks_both(
    style: Style, error: Errors, fault: Fault | None
) -> None:
    two = Pair(style, prefill_error=error, decode_after=10_000)
    with pytest.raises(SmgError) as raised:
        await two.read()
    assert raised.value.code == error().code
    # Where nothing was to be handed over yet, a call that was dropped is its engine's own.
    assert two.call.fault == (fault or ("transfer" if style == "room" else "prefill"))
    assert two.call.broke == "prefill"
    assert (two.p.open, two.d.open) == (0, 0)
    assert two.told == []


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("error", "fault"),
    [(gone, "decode"), (full, "decode"), (silent, "transfer"), (aborted, "transfer")],
)
async def test_what_breaks_the_second_call_before_its_first_word(
    style: Style, error: Errors, fault: Fault
) -> None:
    two = Pair(style, decode_error=error)
    with pytest.raises(SmgError):
        await two.read()
    assert two.call.fault == fault
    assert (two.p.open, two.d.open) == (0, 0)


async def test_a_second_engine_that_notices_first_is_not_blamed_for_the_first_ones_end() -> None:
    two = Pair("room", prefill_after=8, prefill_error=gone, decode_after=2, decode_error=aborted)
    with pytest.raises(SmgError) as raised:
        await two.read()
    assert raised.value.code == UNREACHABLE_CODE
    assert two.call.fault == "prefill"


async def test_a_second_engine_is_silent_as_long_as_the_first_one_works() -> None:
    two = Pair("room", prefill_after=NEVER, decode_after=2, decode_error=silent)
    with pytest.raises(SmgError):
        await two.read()
    assert two.call.fault == "prefill"


@pytest.mark.parametrize("style", STYLES)
async def test_after_its_first_word_a_break_is_the_second_ones(style: Style) -> None:
    for after in range(1, 3):
        two = Pair(style, breaks_after=after)
        with pytest.raises(SmgError):
            await two.read()
        assert two.call.fault == "decode"
        assert (two.p.open, two.d.open) == (0, 0)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("prefill_after", [0, 3, NEVER])
@pytest.mark.parametrize("decode_after", [0, 3, NEVER])
async def test_whoever_leaves_at_whatever_moment_leaves_nothing_open(
    style: Style, prefill_after: int, decode_after: int
) -> None:
    for turns in (1, 2, 5, 9):
        two = Pair(style, prefill_after=prefill_after, decode_after=decode_after)
        await interrupt(two.read(), after_turns(turns))
        assert (two.p.open, two.d.open) == (0, 0)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("prefill_after", [0, 4, NEVER])
@pytest.mark.parametrize("again_after", range(6))
@pytest.mark.parametrize("leaves", [False, True], ids=["cancelled", "left"])
async def test_a_cancellation_in_the_middle_of_the_cleanup_leaves_nothing_open(
    style: Style, prefill_after: int, again_after: int, *, leaves: bool
) -> None:
    for turns in range(1, 12):
        two = Pair(style, prefill_after=prefill_after, decode_after=2, letters="abcdefgh")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(two.read_one() if leaves else two.read_all())
            await _turns(turns)
            if not leaves:
                task.cancel()
            await _turns(again_after)
            for _ in range(3):
                task.cancel()
                await _turns(1)
        await _turns(3)
        assert (two.p.open, two.d.open) == (0, 0), (turns, again_after)


async def test_a_call_that_may_be_taking_its_blocks_is_let_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_legs, "HANDOVER_S", 5.0)
    two = Pair("nixl", prefill_after=0, decode_after=40)
    await interrupt(two.read(), lambda: two.d.open > 0)
    assert two.spoken == 1
    assert two.d.requests[0].transfer == '{"block":1}'
    assert two.d.open == 0


async def test_ranks_and_words_go_where_they_belong() -> None:
    two = Pair("nixl")
    await two.read()
    assert (two.p.prefilled[0].rank, two.d.requests[0].rank) == (0, 1)
    assert two.p.prefilled[0].transfer == '{"do_remote_decode":true,"do_remote_prefill":false}'
    two = Pair("minted")
    await two.read()
    assert "xfer-0000000000000005" in two.p.prefilled[0].transfer
    assert '"remote_bootstrap_addr":"http://host:8998"' in two.d.requests[0].transfer
    assert '"remote_engine_id":"e1"' in two.d.requests[0].transfer
    two = Pair("room")
    await two.read()
    assert two.p.prefilled[0].room == two.d.requests[0].room
    assert (two.p.prefilled[0].rank, two.d.requests[0].rank) == (0, 1)


def test_whose_fault_it_is() -> None:
    deadline = failed("deadline_exceeded", ErrorKind.UPSTREAM_TIMEOUT)
    assert fault_of(deadline, "prefill") == "prefill"
    assert fault_of(deadline, "decode") == "decode"
    assert fault_of(SmgError(ErrorKind.INVALID_REQUEST, "no"), "prefill") == "prefill"
    assert fault_of(failed("upstream_cut"), "decode") == "transfer"
    assert fault_of(failed("upstream_denied"), "decode") == "decode"


class Forgetful(FakeEngine):
    """An engine that holds nothing of what it was asked for once it has begun."""

    async def prefill(self, request: EngineRequest) -> Prefilled:
        return Prefilled()

    def generate(self, request: EngineRequest) -> AsyncGenerator[Sequence[Chunk], None]:
        return pulled(lambda: PulledChunks(self._said(len(request.ids))))

    async def _said(self, count: int) -> AsyncGenerator[Sequence[Chunk], None]:
        for at in range(count):
            yield [Chunk(0, (at,))]


@pytest.mark.parametrize("style", STYLES)
async def test_nothing_of_a_request_is_held_while_the_answer_goes_on(style: Style) -> None:
    engine = Forgetful()
    call = PairCall(Partners(engine, engine, style, "p", 1, 2), lambda _: None)
    media = EncodedBatch((b"a picture",))
    before = sys.getrefcount(media)
    ids = token_ids([1, 2, 3])
    chunks = call.chunks(EngineRequest("r", ids, Sampling(), True, 10.0, {}, media=media))
    async with aclosing(chunks):
        assert [chunk.ids for chunk in await anext(chunks)] == [(0,)]
        await asyncio.sleep(0)
        gc.collect()
        assert sys.getrefcount(media) == before
        assert [chunk.ids async for batch in chunks for chunk in batch] == [(1,), (2,)]
