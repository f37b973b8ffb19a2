"""Encode calls to a simulated encode worker, over both transports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.simulator.engine import Engine
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.contracts.media.item_cuts import items_of, single
from smg_node.engines.disaggregation import Room
from smg_node.engines.engine import Contract, Encoder, EngineRequest
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import open_engine
from smg_node.engines.grpc.remote_engine import RemoteEngine
from smg_node.engines.shared_memory import FOLDER, PREFIX, SharedMemory
from support.engine_media.media_requests import qwen_batch, request_of
from support.engines.simulated_engine import served

COLUMNS = 3 * 2 * 16 * 16


@dataclass
class Side:
    """An encode worker, and the node's view of it."""

    simulated: Engine
    engine: RemoteEngine

    def request(self, name: str = "eng-1-e0", *, room: int = 17, side: int = 4) -> EngineRequest:
        _, media = qwen_batch([(1, side, side)], columns=COLUMNS)
        placeholder = self.simulated.bundle.placeholder
        assert placeholder is not None
        place = media.ranges[0]
        own = [placeholder] * place.length
        alone = replace(single(media, 0, items_of(media)[0]), placeholder=placeholder)
        return replace(request_of(own, alone, name=name), room=Room("", 0, room))


@asynccontextmanager
async def encoder(
    *, faults: tuple[str, ...] = (), settings: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Side]:
    said = {"contract": "tokenspeed", "vision": "qwen3_vl", "role": "encode", "bootstrap_port": 0}
    wanted = Wanted(settings={**said, **(settings or {})}, script="pictures", faults=faults)
    with served(wanted) as engines:
        address = engines.address
        remote = await open_engine(address, EngineOptions(**options), contract=Contract.TOKENSPEED)
        try:
            yield Side(engines.engines[0], remote)
        finally:
            await remote.close()


@pytest.mark.parametrize("transport", ["h2", "grpcio"])
async def test_a_picture_is_accepted_once_for_each_room(transport: str) -> None:
    async with encoder(transport=transport, settings={"prefill_tokens_per_s": 0.0}) as side:
        card = await side.engine.card(10)
        assert (card.role, card.pairing is not None) == ("encode", True)
        assert isinstance(side.engine, Encoder)
        assert await side.engine.serving(5)
        await side.engine.encode(side.request())
        await side.engine.encode(side.request("eng-1-e1", room=18))
        with pytest.raises(SmgError, match="the engine failed"):
            await side.engine.encode(side.request("eng-1-e2"))
        assert side.simulated.tally.encoded == 2
        assert side.simulated.tally.media_mistakes == 0


async def test_it_generates_nothing_and_says_so() -> None:
    async with encoder() as side:
        request = replace(side.request(), room=None, media=None)
        with pytest.raises(SmgError) as caught:
            async for _ in side.engine.generate(request):
                pass
        assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_values_go_through_shared_memory_and_leave_nothing_behind() -> None:
    before = set(FOLDER.glob(f"{PREFIX}*"))
    settings = {"shared_memory": True, "media_dtype": "float32"}
    async with encoder(settings=settings, open_memory=SharedMemory) as side:
        await side.engine.card(10)
        await side.engine.encode(side.request(side=8))
        assert side.simulated.tally.shared == 1
        assert side.simulated.tally.pictures == 1
    assert set(FOLDER.glob(f"{PREFIX}*")) <= before


async def test_an_encoder_that_is_full_or_gone_says_so_in_its_own_way() -> None:
    async with encoder(faults=("refuse:status=RESOURCE_EXHAUSTED,request=1",)) as side:
        with pytest.raises(SmgError) as caught:
            await side.engine.encode(side.request())
        assert caught.value.kind is ErrorKind.OVERLOADED
        await side.engine.encode(side.request("eng-2-e0"))


async def test_a_closed_engine_encodes_nothing() -> None:
    async with encoder() as side:
        await side.engine.close()
        with pytest.raises(SmgError) as caught:
            await side.engine.encode(side.request())
        assert caught.value.code == "worker_removed"
