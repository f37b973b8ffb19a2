"""A vendor call takes along what its prompt's cache needs, and tells what came of it."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from smg_node.admission.admission import Admission
from smg_node.core.generation.events import Usage
from smg_node.core.prices.price_list import PriceBook
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions
from smg_node.engines.http.http_engine import RelayRequest
from smg_node.engines.http.vendor_side import Dressed, VendorSide
from smg_node.pipeline.relay.relay_context import Asks, Translation
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.vendors.call_prices import CallPrices
from smg_node.pipeline.relay.vendors.call_state import CallState
from smg_node.pipeline.relay.vendors.provider_meter import ProviderMeter
from smg_node.pipeline.relay.vendors.vendor_call import VendorCall
from smg_node.providers.provider_dialects import provider_dialect
from support.rights.fake_rights import LimitWorld, door_of, limit, whole

USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 40},
}
CHUNKS = [
    {"model": "v", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]},
    {"model": "v", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"model": "v", "choices": [], "usage": USAGE},
]
STREAM = [b"data: " + msgspec.json.encode(one) + b"\n\n" for one in CHUNKS] + [b"data: [DONE]\n\n"]
WHOLE = msgspec.json.encode(
    {
        "model": "v",
        "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
)
REQUEST = RelayRequest(path="", body=b"", streamed=True, timeout_s=10)


class Cached:
    """Takes down what it is told."""

    prefer = "k1"
    wait_s = 0.0
    expected = 33.0

    def __init__(self) -> None:
        self.told: list[object] = []

    def native(self, raw: bytes) -> bytes:
        return raw + b" "

    def written(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**fields, "marked": True}

    def sent(self, key: str) -> None:
        self.told.append(key)

    def spoke(self) -> None:
        self.told.append("spoke")

    def answered(self, used: Usage | None) -> None:
        self.told.append(None if used is None else used.cached_tokens)


class Undress:
    def event(self, data: bytes) -> bytes:
        return data

    def whole(self, body: bytes) -> bytes:
        return body


class Side:
    provider, model, dialects = "p", "v", ("chat",)

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, str]] = []
        self.counted: tuple[object, ...] = ()

    def dialect(self, name: str) -> ProviderDialect:
        return provider_dialect(name, self.model)

    def options(self, name: str, *, stateless: bool = False) -> WriterOptions:
        return WriterOptions(model="v", issuer="openai")

    def quirks(self) -> frozenset[str]:
        return frozenset()

    async def passed(self, name: str, raw: bytes, *, prefer: str, **more: object) -> Dressed:
        self.asked.append((raw, prefer))
        return Dressed("/", {}, raw, Undress())

    async def written(
        self, name: str, fields: Mapping[str, object], *, prefer: str, **more: object
    ) -> Dressed:
        self.asked.append((msgspec.json.encode(fields), prefer))
        return Dressed("/", {}, b"")

    def cache_key_of(self, dressed: Dressed) -> str:
        return "k2"

    def cached(self, *, read: int, written: int, expected: float) -> None:
        self.counted = read, written, expected

    def answer_headers(self, headers: Mapping[str, str], dressed: Dressed) -> dict[str, str]:
        return {}

    def unframer(self, name: str) -> None:
        return None


class Engine:
    """Answers with these pieces."""

    def __init__(self, pieces: Sequence[bytes], kind: str) -> None:
        self.status, self.headers = 200, {"content-type": kind}
        self._pieces = list(pieces)

    async def relay(self, request: RelayRequest) -> "Engine":
        return self

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def close(self) -> None:
        """Do nothing."""


def call_of(
    side: Side,
    cached: Cached,
    *,
    streamed: bool,
    api: str = "chat",
    admission: Admission | None = None,
) -> VendorCall:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": streamed}
    asked = relayable(
        msgspec.structs.replace(APIS["chat"], name=api), msgspec.json.encode(body), body
    )
    dialect = ChatDialect(ReaderOptions())

    def translate() -> Translation:
        reading = dialect.read(dict(body))
        return Translation(reading.request, dialect.presenter(reading))

    asks = Asks("chat", streamed=streamed, answer="1", translate=translate)
    pieces, kind = (
        (STREAM, "text/event-stream")
        if streamed or api != "chat"
        else ([WHOLE], "application/json")
    )
    engine: Any = Engine(pieces, kind)
    prices = partial(CallPrices, PriceBook(), asked, lambda: 0)
    own = (
        ProviderMeter(admission, prices, asked, cast("VendorSide", side), "m"),
        CallState(None, "", "chat"),
    )
    return VendorCall(engine, side, asked, asks, "m", lambda: 1, lambda: None, *own, cached)  # type: ignore[arg-type]  # as far as it is asked


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_passing_call_prefers_the_key_and_tells_its_usage(streamed: bool) -> None:
    side, cached = Side(), Cached()
    async for _ in call_of(side, cached, streamed=streamed).answer(REQUEST):
        pass
    ((raw, prefer),) = side.asked
    assert (raw[-1:], prefer) == (b" ", "k1")
    assert cached.told[0] == "k2"
    assert sorted(map(str, cached.told[1:])) == ["40", "spoke"]
    assert side.counted == (40, 0, 33.0)


async def test_a_translated_call_is_written_with_what_the_cache_needs() -> None:
    side, cached = Side(), Cached()
    async for _ in call_of(side, cached, streamed=True, api="messages").answer(REQUEST):
        pass
    ((body, prefer),) = side.asked
    assert msgspec.json.decode(body)["marked"] is True
    assert prefer == "k1"
    assert cached.told == ["k2", "spoke", 40]


async def test_who_waits_for_a_cache_is_charged_when_the_wait_is_over() -> None:
    limits = LimitWorld()
    share = limits.add(limit(scope="provider=p"), 5)
    limits.rules.providers["p"] = [limits.rules.matches.pop()]
    side, cached = Side(), Cached()
    cached.wait_s = 5.0
    call = call_of(side, cached, streamed=True, admission=door_of(limits))

    async def first() -> None:
        await anext(call.answer(REQUEST))

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(first())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert whole(share) == (5, 0)
        waiting.cancel()
    assert side.asked == []
    cached.wait_s = 0.001
    async for _ in call_of(side, cached, streamed=True, admission=door_of(limits)).answer(REQUEST):
        assert whole(share) == (4, 1)
    assert len(side.asked) == 1
