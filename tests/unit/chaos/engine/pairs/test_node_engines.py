"""Simulated pairs as the node's own engines see them: what they say of themselves, and calls of both kinds."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Sampling, TokenIds, token_ids
from smg_node.engines.disaggregation import Room
from smg_node.engines.engine import Engine, EngineRequest
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import open_engine
from support.engines.simulated_engine import PROMPT, Simulation
from support.engines.simulated_pair import ids_of, served_pair

IDS: TokenIds = token_ids(PROMPT)
GIVE = '{"do_remote_decode": true, "do_remote_prefill": false}'


class Sides:
    """Both engines of a served pair, opened."""

    def __init__(self, prefill: Engine, decode: Engine) -> None:
        self.prefill = prefill
        self.decode = decode
        self._count = 0

    def request(
        self, *, tokens: int = 30, room: Room | None = None, transfer: str = ""
    ) -> EngineRequest:
        self._count += 1
        sampling = Sampling(max_tokens=tokens, temperature=0.0, ignore_eos=tokens == 1)
        name = f"asked-{self._count}"
        return EngineRequest(name, IDS, sampling, True, 20.0, room=room, transfer=transfer)

    async def drawn(self, request: EngineRequest) -> list[int]:
        ids: list[int] = []
        async for chunks in self.decode.generate(request):
            for chunk in chunks:
                ids += chunk.ids
        return ids


@asynccontextmanager
async def sides(
    contract: str, connector: str = "contract", *, ranks: int = 1, pair_wait_s: float = 20.0
) -> AsyncIterator[Sides]:
    with served_pair(contract, connector, ranks=ranks, pair_wait_s=pair_wait_s) as pair:
        opened = [await open_engine(one.address, EngineOptions()) for one in pair]
        try:
            yield Sides(*opened)
        finally:
            for engine in opened:
                await engine.close()


def alone(contract: str) -> list[int]:
    simulation = Simulation(contract)
    return ids_of(simulation, simulation.generate(max_tokens=30))


@pytest.mark.parametrize("contract", ["sglang", "tokenspeed"])
async def test_rooms_are_met_in(contract: str) -> None:
    async with sides(contract) as both:
        cards = [await side.card(20.0) for side in (both.prefill, both.decode)]
        assert [card.role for card in cards] == ["prefill", "decode"]
        first, second = (card.pairing for card in cards)
        assert first is not None
        assert second is not None
        assert (first.style, first.group) == (second.style, second.group) == ("room", "mooncake")
        assert first.bootstrap_port is not None
        room = Room("127.0.0.1", first.bootstrap_port, 12345)
        async with asyncio.TaskGroup() as group:
            worked = group.create_task(both.prefill.prefill(both.request(room=room)))
            drawn = group.create_task(both.drawn(both.request(room=room)))
        assert worked.result().prompt_tokens == len(PROMPT)
        assert drawn.result() == alone(contract)


async def test_a_room_that_nobody_fills_is_an_error_upstream() -> None:
    async with sides("sglang", pair_wait_s=0.2) as both:
        with pytest.raises(SmgError):
            await both.prefill.prefill(both.request(room=Room("127.0.0.1", 1, 12345)))
        with pytest.raises(SmgError):
            await both.drawn(both.request(room=Room("127.0.0.1", 1, 12345)))


async def test_what_a_connector_says_is_passed_on() -> None:
    async with sides("vllm", "nixl") as both:
        cards = [await side.card(20.0) for side in (both.prefill, both.decode)]
        assert [card.role for card in cards] == ["prefill", "decode"]
        assert {card.pairing.style for card in cards if card.pairing} == {"nixl"}
        worked = await both.prefill.prefill(both.request(tokens=1, transfer=GIVE))
        drawn = await both.drawn(both.request(transfer=worked.transfer))
        assert drawn == alone("vllm")
        with pytest.raises(SmgError):
            await both.drawn(both.request(transfer=worked.transfer))


@pytest.mark.parametrize("ranks", [1, 2])
async def test_a_minted_name_is_enough(ranks: int) -> None:
    async with sides("vllm", "mooncake", ranks=ranks) as both:
        card = await both.prefill.card(20.0)
        assert card.pairing is not None
        assert (card.pairing.style, card.ranks) == ("minted", ranks)
        assert card.pairing.engine_id


async def test_a_store_needs_no_word() -> None:
    async with sides("vllm", "store") as both:
        cards = [await side.card(20.0) for side in (both.prefill, both.decode)]
        assert [card.pairing.style for card in cards if card.pairing] == ["store", "store"]
        worked = await both.prefill.prefill(both.request(tokens=1, transfer=json.dumps({"a": 1})))
        assert worked.transfer == ""
        assert await both.drawn(both.request()) == alone("vllm")
