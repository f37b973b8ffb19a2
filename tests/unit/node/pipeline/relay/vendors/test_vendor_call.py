"""A call of a vendor passes on, translates or is listened to; its end is the answer's, and what it refused is tried once more."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import End, Event, Usage
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.core.prices.price_list import PriceBook
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.http.http_engine import RelayRequest
from smg_node.engines.http.vendor_cache import CachePlace, CacheRules
from smg_node.engines.http.vendor_side import Dressed, Refusal, VendorSide
from smg_node.pipeline.relay.answer_collector import AnswerCollector, begin_of
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import Asks, Spent, Translation
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.vendors import vendor_stream
from smg_node.pipeline.relay.vendors.call_prices import CallPrices
from smg_node.pipeline.relay.vendors.call_state import CallState
from smg_node.pipeline.relay.vendors.provider_meter import ProviderMeter
from smg_node.pipeline.relay.vendors.vendor_call import VendorCall
from smg_node.providers.provider_dialects import provider_dialect

BODY: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "stream": True,
}
BROKEN = SmgError(ErrorKind.UPSTREAM_FAILED, "the connection broke")
REFUSED = SmgError(ErrorKind.INVALID_REQUEST, "no")


def chunk(content: str = "", reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
    return b"data: " + msgspec.json.encode({"model": "v", "choices": [choice]}) + b"\n\n"


USED = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = (chunk("Hel"), chunk("lo"), chunk(reason="stop"), USED, DONE)


class Stream:
    """Answer of a vendor: pieces, then what comes behind them: an error, silence, or the end."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        then: SmgError | None = None,
        *,
        open_: bool = False,
        status: int = 200,
    ) -> None:
        self.status = status
        self.headers = {
            "content-type": "text/event-stream" if status == 200 else "application/json"
        }
        self.closed = False
        self._pieces = list(pieces)
        self._then = then
        self._open = open_

    async def read(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        if self._open:
            await asyncio.Event().wait()
        if self._then is not None:
            raise self._then
        return b""

    def close(self) -> None:
        self.closed = True


class Engine:
    """Gives one stream after the other; an error instead of one is raised."""

    def __init__(self, *streams: Stream | SmgError) -> None:
        self.asked: list[RelayRequest] = []
        self._streams = list(streams)

    async def relay(self, request: RelayRequest) -> Stream:
        self.asked.append(request)
        stream = self._streams.pop(0)
        if isinstance(stream, SmgError):
            raise stream
        return stream


class Undress:
    def event(self, data: bytes) -> bytes | None:
        return data

    def whole(self, body: bytes) -> bytes:
        return body


class Side:
    provider = "p"
    model = "v"
    dialects = ("chat",)

    def __init__(self, *refusals: Refusal) -> None:
        self.done: list[str] = []
        self.spent: list[int] = []
        self._refusals = list(refusals)

    def dialect(self, name: str) -> ProviderDialect:
        return provider_dialect(name, self.model, "openai")

    def options(self, name: str, *, stateless: bool = False) -> WriterOptions:
        return WriterOptions(model="v", issuer="" if stateless else "openai")

    def quirks(self) -> frozenset[str]:
        return frozenset()

    async def passed(
        self,
        name: str,
        raw: bytes,
        *,
        ours: str,
        streamed: bool,
        headers: Mapping[str, str],
        prompt_tokens: int,
        prefer: str = "",
    ) -> Dressed:
        self.done.append("passed")
        self.spent.append(prompt_tokens)
        return Dressed("/native", {}, raw, Undress())

    async def written(
        self,
        name: str,
        fields: Mapping[str, object],
        *,
        headers: Mapping[str, str],
        prompt_tokens: int,
        prefer: str = "",
    ) -> Dressed:
        self.done.append("written")
        self.spent.append(prompt_tokens)
        return Dressed("/written", {}, msgspec.json.encode(fields))

    def answer_headers(self, headers: Mapping[str, str], dressed: Dressed) -> dict[str, str]:
        return {}

    def unframer(self, name: str) -> None:
        return None

    def refused(
        self, status: int, headers: Mapping[str, str], body: bytes, dressed: Dressed
    ) -> Refusal:
        return self._refusals.pop(0)

    def broken(self, said: WorkerError, dressed: Dressed) -> SmgError:
        return BROKEN

    def unanswered(self, dressed: Dressed) -> None:
        self.done.append("unanswered")

    cache_key_added = False

    def cache_rules(self, name: str) -> CacheRules:
        return CacheRules(marked=False, least_tokens=1, life_ms=1)

    def cache_places(self, tokens: float) -> Sequence[CachePlace]:
        return (CachePlace(1),)

    def cache_key_of(self, dressed: Dressed) -> str:
        return "k1"

    def cached(self, *, read: int, written: int, expected: float) -> None:
        self.tokens = read, written, expected

    def off_s(self, prompt_tokens: int = 0) -> float:
        return 0.0

    def off_error(self, prompt_tokens: int = 0) -> SmgError:
        return BROKEN

    def refusal(self, prompt_tokens: int) -> SmgError:
        return BROKEN

    def missed(self, prompt_tokens: int) -> None:
        self.done.append("missed")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait long behind an end."""
    monkeypatch.setattr(vendor_stream, "TAIL_S", 0.01)


def wish() -> GenerateRequest:
    return GenerateRequest("m", (ChatPrompt((Turn("user", "Hi"),)),), Sampling(), stream=True)


def called(
    engine: Engine,
    side: Side,
    *,
    body: Mapping[str, Any] = BODY,
    listen: Callable[[Any], Any] = lambda _as: None,
) -> VendorCall:
    raw = msgspec.json.encode(body)
    asked = relayable(APIS["chat"], raw, dict(body))
    dialect = ChatDialect(ReaderOptions())

    def translate() -> Translation:
        reading = dialect.read(dict(body))
        return Translation(reading.request, dialect.presenter(reading))

    asks = Asks("chat", streamed=asked.streamed, answer="1", listen=listen, translate=translate)
    prices = partial(CallPrices, PriceBook(), asked, lambda: 0)
    meter = ProviderMeter(None, prices, asked, cast("VendorSide", side), "m")
    seen: Any = side
    asked_of: Any = engine
    own = meter, CallState(None, "", "chat")
    return VendorCall(asked_of, seen, asked, asks, "m", lambda: 1000, lambda: None, *own)


REQUEST = RelayRequest(path="", body=b"", streamed=True, timeout_s=10)


async def told(call: VendorCall) -> bytes:
    pieces: AsyncGenerator[Head | bytes, None] = call.answer(REQUEST)
    return b"".join([piece async for piece in pieces if isinstance(piece, bytes)])


async def heard(engine: Engine, side: Side) -> tuple[list[Event], VendorCall]:
    """Return the events that a listener of the call has, and the call."""
    collectors: list[AnswerCollector] = []

    def listen(listen_as: Any) -> AnswerCollector:
        reader = listen_as(begin_of(wish(), "1", 1000), 3, ())
        collectors.append(AnswerCollector(reader, seen=True))
        return collectors[0]

    call = called(engine, side, listen=listen)
    async for _ in call.answer(REQUEST):
        pass
    return collectors[0].take(), call


async def test_a_client_of_the_vendors_own_api_gets_its_bytes() -> None:
    engine, side = Engine(Stream(WHOLE)), Side()
    call = called(engine, side)
    assert await told(call) == b"".join(WHOLE)
    assert side.done == ["passed"]
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (5, 2)
    assert engine.asked[0].body == msgspec.json.encode(BODY)


@pytest.mark.parametrize(
    "behind", [Stream(WHOLE, open_=True), Stream(WHOLE, BROKEN)], ids=["silence", "a break"]
)
async def test_what_comes_behind_the_end_of_an_answer_takes_nothing_from_it(behind: Stream) -> None:
    async with asyncio.timeout(5):
        assert await told(called(Engine(behind), Side())) == b"".join(WHOLE)
    assert behind.closed


@pytest.mark.parametrize(
    "behind", [Stream(WHOLE, open_=True), Stream(WHOLE, BROKEN)], ids=["silence", "a break"]
)
async def test_nor_from_one_that_is_listened_to(behind: Stream) -> None:
    async with asyncio.timeout(5):
        events, call = await heard(Engine(behind), Side())
    assert events[-2:] == [Usage(5, 2, 0), End()]
    assert call.usage.completion_tokens == 2


@pytest.mark.parametrize("stream", [True, False])
async def test_nor_from_one_that_is_translated(stream: bool) -> None:
    body = {**BODY, "stream": stream, "user": "smg1"}
    marked = {**body, "messages": [{"role": "user", "content": '"smg1o.x'}]}
    side = Side()
    async with asyncio.timeout(5):
        said = await told(called(Engine(Stream(WHOLE, open_=True)), side, body=marked))
    assert b"Hel" in said
    assert side.done == ["written"]
    assert side.spent == [
        relayable(APIS["chat"], msgspec.json.encode(marked), marked).prompt_tokens
    ]
    assert side.spent > [1]


async def test_a_break_before_the_end_is_one() -> None:
    with pytest.raises(SmgError, match="broke"):
        await told(called(Engine(Stream(WHOLE[:2], BROKEN)), Side()))
    with pytest.raises(SmgError, match="broke"):
        await heard(Engine(Stream(WHOLE[:2], BROKEN)), Side())


async def test_a_call_that_brings_no_answer_is_given_back() -> None:
    side = Side()
    with pytest.raises(SmgError, match="broke"):
        await told(called(Engine(BROKEN), side))
    assert side.done == ["passed", "unanswered"]


async def test_state_that_is_refused_is_left_out_once() -> None:
    refusal = Refusal(REFUSED, without_state=True)
    engine, side = Engine(Stream([b"{}"], status=400), Stream(WHOLE)), Side(refusal)
    assert b"Hel" in await told(called(engine, side))
    assert side.done == ["passed", "written"]
    twice = Engine(Stream([b"{}"], status=400), Stream([b"{}"], status=400))
    with pytest.raises(SmgError, match="no"):
        await told(called(twice, Side(refusal, refusal)))
    assert len(twice.asked) == 2


async def test_a_field_that_is_refused_is_left_out_of_what_is_written_here_only() -> None:
    refusal = Refusal(REFUSED, anew=True)
    own = Engine(Stream([b"{}"], status=400))
    with pytest.raises(SmgError, match="no"):
        await told(called(own, Side(refusal)))
    assert len(own.asked) == 1
    written = Engine(Stream([b"{}"], status=400), Stream(WHOLE))
    events, _ = await heard(written, Side(refusal))
    assert events[-1] == End()
    assert len(written.asked) == 2


# ── What the vendor takes money for ──────────────────────────────────────────


async def test_a_whole_answer_costs_what_its_vendor_says() -> None:
    passed = called(Engine(Stream(WHOLE)), Side())
    await told(passed)
    _, listened = await heard(Engine(Stream(WHOLE)), Side())
    assert passed.spent() == listened.spent() == Spent(Usage(5, 2, 0))


@pytest.mark.parametrize("listened", [True, False])
async def test_one_that_broke_off_costs_its_prompt_and_what_came(listened: bool) -> None:
    call = called(
        Engine(Stream(WHOLE[:2], BROKEN)), Side(), listen=_listen if listened else _nobody
    )
    with pytest.raises(SmgError, match="broke"):
        await told(call)
    spent = call.spent()
    assert spent == Spent(Usage(7, 2, 0), estimated=True)
    assert call.usage.completion_tokens == 2


async def test_one_whose_client_left_costs_what_came() -> None:
    call = called(Engine(Stream(WHOLE)), Side())
    pieces = call.answer(REQUEST)
    async for piece in pieces:
        if isinstance(piece, bytes):
            break
    await pieces.aclose()
    assert call.spent() == Spent(Usage(7, 1, 0), estimated=True)


async def test_what_was_never_answered_costs_nothing() -> None:
    refusal = Refusal(REFUSED)
    refused = called(Engine(Stream([b"{}"], status=400)), Side(refusal))
    unheard = called(Engine(BROKEN), Side())
    failed = called(Engine(Stream([b'data: {"error":{"message":"full"}}\n\n'])), Side())
    for call in (refused, unheard, failed):
        with pytest.raises(SmgError):
            await told(call)
        assert call.spent() is None


def _listen(listen_as: Any) -> AnswerCollector:
    return AnswerCollector(listen_as(begin_of(wish(), "1", 1000), 3, ()), seen=True)


def _nobody(_listen_as: Any) -> None:
    return None
