"""Engines of a world: what they say comes in order, and what befalls them is felt by those who call them."""

from collections.abc import Sequence

import pytest

from smg_chaos.engine.protocol.rpc_call import Code, End
from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.real import make_core
from smg_chaos.simulate.whole.client_request import Request
from smg_chaos.simulate.whole.engines import EngineCall, VirtualEngine, bundle
from smg_chaos.simulate.whole.letter_vocabulary import Letters
from smg_chaos.simulate.whole.traffic_setting import TrafficSetting
from smg_chaos.simulate.world.world import Setting, World
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.engines.contracts.vllm import VllmWire
from smg_node.engines.engine import EngineRequest
from smg_node.engines.grpc.stream_reader import StreamReader


class Caller:
    """A node that calls one engine, and what it heard."""

    def __init__(self) -> None:
        self.world = World(Setting(seed=1), make_core)
        self.node = self.world.boot(self.world.add_host("n0"))
        setting = TrafficSetting(engines=("w0",), requests_per_s=1.0)
        self.engine = VirtualEngine(self.world, "w0", setting, bundle())
        self.request = Request(number=1, prompt="hello", tokens=20, since_us=0)
        self.chunks: list[Chunk] = []
        self.end: End | None = None

    def call(self) -> EngineCall:
        sampling = Sampling(max_tokens=20, temperature=0.0, ignore_eos=True)
        wire = VllmWire()
        reader = StreamReader.of(sampling, wire)
        ids = token_ids(list(self.request.prompt.encode()))
        asked = EngineRequest("one", ids, sampling, stream=True, timeout_s=60.0)

        def heard(messages: Sequence[bytes], end: End | None) -> None:
            reader.take(messages, self.chunks)
            self.end = end

        return self.engine.start(self.node, wire.generate(asked, bias_width=None), heard)

    @property
    def text(self) -> str:
        ids = [token_id for chunk in self.chunks for token_id in chunk.ids]
        return Letters().decode(ids, skip_special_tokens=True)


@pytest.fixture
def caller() -> Caller:
    return Caller()


def test_an_answer_is_what_its_client_expects(caller: Caller) -> None:
    caller.call()
    caller.world.run_for(SECOND)
    assert caller.text == caller.request.expected
    assert caller.end is not None
    assert caller.end.code is Code.OK
    assert caller.engine.open == 0
    caller.engine.check()


def test_an_engine_that_dies_cuts_its_calls_and_comes_back_empty(caller: Caller) -> None:
    caller.call()
    caller.world.run_for(200 * MS)
    caller.engine.die()
    caller.world.run_for(MS)
    assert caller.end is not None
    assert caller.end.code is Code.UNAVAILABLE
    assert 0 < len(caller.text) < 20
    assert not caller.engine.is_there("n0")
    assert caller.engine.well_for_us == 0
    caller.engine.begin()
    caller.world.run_for(SECOND)
    assert (caller.engine.open, caller.engine.well_for_us) == (0, SECOND)


def test_one_that_stands_still_says_nothing_and_goes_on_where_it_was(caller: Caller) -> None:
    caller.call()
    caller.world.run_for(200 * MS)
    caller.engine.stall(on=True)
    caller.world.run_for(MS)
    said = caller.text
    caller.world.run_for(2 * SECOND)
    assert caller.text == said != caller.request.expected
    caller.engine.stall(on=False)
    caller.world.run_for(SECOND)
    assert caller.text == caller.request.expected


def test_one_that_a_node_cannot_reach_is_gone_for_that_node_only(caller: Caller) -> None:
    caller.engine.cut_off("n0", on=True)
    caller.call()
    caller.world.run_for(MS)
    assert caller.end is not None
    assert caller.end.code is Code.UNAVAILABLE
    assert not caller.engine.is_there("n0")
    assert caller.engine.is_there("n1")


def test_who_hangs_up_hears_no_more_and_frees_its_slot(caller: Caller) -> None:
    call = caller.call()
    caller.world.run_for(200 * MS)
    said = caller.text
    call.cancel()
    caller.world.run_for(SECOND)
    assert caller.text == said
    assert caller.engine.open == 0
