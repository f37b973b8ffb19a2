"""The follower behind simulated engines: what they really publish, contract by contract."""

from collections.abc import Iterator

import pytest

from smg_node.engines.kv_events import CURSOR_CODE, LOST_CODE
from support.engines.simulated_engine import Simulation
from support.fleet.kv_event_consumer import BLOCK, Hearing

WITH_EVENTS = [("vllm", "python"), ("vllm", "rust"), ("sglang", "python"), ("tokenspeed", "python")]


def prompts(count: int = 36) -> Iterator[list[int]]:
    """Yield prompts that share beginnings of odd lengths, some of them again and again."""
    for at in range(count):
        start = [50 + at % 3] * (70 + 37 * (at % 3))
        yield start + [100 + at % 7 + turn for turn in range(60 + 40 * (at % 4))]


def contents(hearing: Hearing) -> list[tuple[float, int]]:
    return [(hearing.known(prompt), hearing.true(prompt)) for prompt in prompts()]


@pytest.mark.parametrize("size", [1, 16, 32, 64])
@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
def test_what_an_engine_holds_is_known_exactly_while_it_evicts_and_answers(
    contract: str, servicer: str, size: int
) -> None:
    # Room for about ten prompts: the rest push them out.
    hearing = Hearing(Simulation(contract, servicer, block_size=size, blocks=-(-2048 // size)))
    for at, prompt in enumerate(prompts()):
        hearing.simulation.generate(prompt, max_tokens=8)
        hearing.hear()
        assert hearing.known(prompt) == hearing.true(prompt)
        for known, true in contents(hearing) if at % 6 == 5 else ():
            assert known == true
    assert any(true > 1 for _, true in contents(hearing))
    assert hearing.index.figures().entries > 5
    assert hearing.follower.gaps == hearing.follower.confused == hearing.follower.refused == 0
    assert hearing.errors == []


@pytest.mark.parametrize("size", [48, 128])
def test_an_engine_with_odd_blocks_is_never_believed_to_hold_more_than_it_does(size: int) -> None:
    hearing = Hearing(Simulation("vllm", block_size=size, blocks=-(-2048 // size)))
    for prompt in prompts():
        hearing.simulation.generate(prompt, max_tokens=8)
        hearing.hear()
    pairs = contents(hearing)
    # Ours may end inside an engine block that goes on with other ids: then a whole one more is there.
    assert all(true <= known <= true + size // BLOCK + 1 for known, true in pairs)
    assert any(known >= 2 for known, _ in pairs)


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
def test_a_flush_is_noticed_at_the_latest_with_the_next_request(
    contract: str, servicer: str
) -> None:
    hearing = Hearing(Simulation(contract, servicer))
    for prompt in prompts(4):
        hearing.simulation.generate(prompt, max_tokens=1)
    hearing.hear()
    first = next(prompts())
    assert hearing.known(first) == hearing.true(first) > 0
    assert hearing.simulation.engine.flush(hearing.simulation.face.now_s)
    hearing.simulation.generate([7] * 130, max_tokens=1)
    hearing.hear()
    assert hearing.known(first) == hearing.true(first) == 0
    assert hearing.known([7] * 130) == 2


@pytest.mark.parametrize(("contract", "servicer"), [("vllm", "python"), ("sglang", "python")])
def test_a_gap_is_noticed_and_what_was_known_given_up(contract: str, servicer: str) -> None:
    simulation = Simulation(contract, servicer, faults=["kv-gap:every=5"])
    hearing = Hearing(simulation)
    for prompt in prompts():
        simulation.generate(prompt, max_tokens=1)
        hearing.hear()
    assert hearing.follower.gaps > 0
    assert hearing.follower.resyncs == hearing.follower.gaps
    for known, true in contents(hearing):
        assert known <= true


def test_a_gap_is_healed_from_a_publisher_with_memory() -> None:
    simulation = Simulation("vllm", "rust", faults=["kv-gap:every=7"])
    hearing = Hearing(simulation)
    for prompt in prompts():
        simulation.generate(prompt, max_tokens=1)
        hearing.hear()
    # Between two gaps the history, which has everything, makes the view whole again.
    assert hearing.follower.gaps > 0
    assert any(known == true > 1 for known, true in contents(hearing))
    for known, true in contents(hearing):
        assert known <= true


def test_a_publisher_that_restarts_is_noticed() -> None:
    simulation = Simulation("vllm", faults=["kv-restart:after=6"])
    hearing = Hearing(simulation)
    for prompt in prompts():
        simulation.generate(prompt, max_tokens=1)
        hearing.hear()
        for one in prompts():
            assert hearing.known(one) <= hearing.true(one)
    assert LOST_CODE in hearing.errors
    for fresh in ([7] * 130, [8] * 130):
        simulation.generate(fresh, max_tokens=1)
        hearing.hear()
    # One of the two may have been the last thing before another restart.
    assert 2 in (hearing.known([7] * 130), hearing.known([8] * 130))


@pytest.mark.parametrize(("contract", "servicer"), [("vllm", "python"), ("sglang", "python")])
def test_after_a_break_a_live_publisher_leaves_us_with_nothing(
    contract: str, servicer: str
) -> None:
    simulation = Simulation(contract, servicer)
    hearing = Hearing(simulation)
    simulation.generate([7] * 130, max_tokens=1)
    hearing.hear()
    assert hearing.known([7] * 130) == 2
    hearing.follower.closed(1.0)
    simulation.generate([8] * 130, max_tokens=1)
    hearing.subscribe()
    assert hearing.start > 0
    hearing.hear()
    assert hearing.errors == [CURSOR_CODE]
    assert hearing.start == 0
    assert hearing.known([7] * 130) == 0
    simulation.generate([9] * 130, max_tokens=1)
    hearing.hear()
    assert hearing.known([9] * 130) == 2


def test_after_a_break_a_publisher_with_memory_goes_on_where_it_was() -> None:
    simulation = Simulation("vllm", "rust")
    hearing = Hearing(simulation)
    simulation.generate([7] * 130, max_tokens=1)
    hearing.hear()
    hearing.follower.closed(1.0)
    simulation.generate([8] * 130, max_tokens=1)
    hearing.subscribe()
    hearing.hear()
    assert hearing.start > 0
    assert hearing.known([7] * 130) == hearing.known([8] * 130) == 2
    assert hearing.follower.gaps == hearing.follower.resyncs == 0


def test_a_snapshot_tells_all_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smg_chaos.engine.cache.kv.HISTORY_BATCHES", 5)
    monkeypatch.setattr("smg_chaos.engine.cache.kv.SNAPSHOT_BLOCKS", 3)
    simulation = Simulation("vllm", "rust", blocks=64, block_size=32)
    early = Hearing(simulation)
    for prompt in prompts():
        simulation.generate(prompt, max_tokens=1)
        early.hear()
    late = Hearing(simulation)
    late.hear()
    assert late.start == 0
    assert late.follower.batches > 3
    assert sorted(late.index.held("w")) == sorted(early.index.held("w")) != []
    for known, true in contents(late):
        assert known == true
    simulation.generate([9] * 130, max_tokens=1)
    late.hear()
    assert late.known([9] * 130) == 2
    assert late.follower.gaps == 0
