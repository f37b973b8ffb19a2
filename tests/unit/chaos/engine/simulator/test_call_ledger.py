"""What an engine writes down of each call: when it came, and what had been made when it ended."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from smg_chaos.engine.host import Host
from smg_chaos.engine.plan_builder import make_plan
from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.protocol.faults import parse_fault
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.scripts.bundle import tiny_bundle
from smg_chaos.engine.scripts.scripts import script_of
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.call_ledger import Account, Line
from smg_chaos.engine.simulator.engine import Engine
from smg_node.system_clock import SystemClock

EPOCH_S = 1_700_000_000.0
STEP_S = 0.010


def engine_telling(*faults: str) -> tuple[Engine, Callable[[], list[Line]]]:
    """Return an engine that began at zero, and what it has written down so far."""
    written: list[str] = []
    bundle = tiny_bundle("sim", vocabulary=4160, context=4096)
    engine = Engine(
        EngineSettings(first_token_s=0.0, step_s=STEP_S, prefill_tokens_per_s=0.0),
        bundle,
        script_of("endless", bundle),
        [parse_fault(fault) for fault in faults],
        now_s=0.0,
        epoch_s=EPOCH_S,
        account=Account(written.append, 3),
    )
    return engine, lambda: [msgspec.json.decode(line, type=Line) for line in written]


def asked(name: str, **more: int) -> Asked:
    return Asked(request_id=name, ids=(5, 6, 7), stream=True, **more)  # type: ignore[arg-type]  # only numbers


def test_a_call_is_told_when_it_comes_and_when_it_is_over_with_what_was_made() -> None:
    engine, told = engine_telling()
    engine.submit(asked("a", max_tokens=4, seed=17), 1.5)
    assert told() == [Line("came", 1_700_000_001_500_000, 3, "a", 17, 3, 4)]
    engine.advance(3.0)
    came, ended = told()
    assert (ended.did, ended.request, ended.seed, ended.made) == ("ended", "a", 17, 4)
    assert came.at_us + 3 * STEP_S * 1e6 <= ended.at_us <= came.at_us + 6 * STEP_S * 1e6


def test_what_was_made_until_a_client_left_is_told() -> None:
    engine, told = engine_telling()
    call = engine.submit(asked("a"), 1.0)
    engine.advance(1.0 + 5.5 * STEP_S)
    made = sum(choice.made for choice in engine.running_as("a")[0].choices)
    call.cancel(1.2)
    came, ended = told()
    assert (came.seed, came.most) == (-1, -1)
    assert 0 < made == ended.made
    assert ended.at_us == 1_700_000_001_200_000
    call.cancel(1.3)
    assert len(told()) == 2


def test_a_call_that_is_turned_away_is_told_as_over_at_once() -> None:
    engine, told = engine_telling("refuse:request=1")
    engine.submit(asked("a", max_tokens=4), 1.0)
    assert [(line.did, line.made) for line in told()] == [("came", 0), ("ended", 0)]


def test_every_call_that_came_is_over_when_the_engine_dies() -> None:
    engine, told = engine_telling()
    for name in "abc":
        engine.submit(asked(name, max_tokens=100), 1.0)
    engine.advance(1.05)
    engine.die(1)
    assert sorted(line.request for line in told() if line.did == "ended") == ["a", "b", "c"]


async def test_a_process_of_engines_keeps_one_account_and_names_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "account.jsonl"
    clock = SystemClock()
    plan = make_plan(Wanted(script="endless", workers=2, account=path))
    host = Host(plan, clock, lambda line: None)
    await host.start()
    try:
        for engine in host.engines:
            engine.submit(asked("a", max_tokens=1), clock.monotonic_s())
        assert path.read_text().count("came") == 2, "lines are there while it runs"
    finally:
        await host.stop()
    lines = [msgspec.json.decode(line, type=Line) for line in path.read_text().splitlines()]
    assert [line.worker for line in lines if line.did == "came"] == [1, 2]
