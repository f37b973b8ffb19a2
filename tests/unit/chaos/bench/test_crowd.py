import os
import resource
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from smg_chaos.bench import crowd
from smg_chaos.bench.children import BenchError
from smg_chaos.bench.crowd import QUIET_MODEL, Found, Wish, crowded, files_of, flows_of, found_of
from smg_chaos.bench.crowd_cli import told
from smg_chaos.bench.figures.process_accounting import Memory
from smg_chaos.bench.gateways.gateways import Place
from smg_chaos.bench.load.job import Tally
from smg_chaos.bench.load.script import Script
from smg_chaos.engine.scripts.bundle import tiny_bundle

MB = 1024 * 1024
WISH = Wish(idle=10, active=2, processes=1)


def found(*, files: int = 99, **tallies: Tally) -> Found:
    memory = (Memory(pss=100 * MB), Memory(pss=112 * MB), Memory(peak=150 * MB))
    counted = {"probes": Tally(requests=3, ttft=[0.001, 0.002, 0.003]), "active": Tally(tokens=40)}
    return found_of(WISH, 10.0, memory, (87, files), (1.0, 2.0, 3.0), counted, tallies)


def test_all_streams_whole_is_well_and_memory_is_shared_among_them() -> None:
    one = found(idle=Tally(requests=10, gap=10.5), active=Tally(requests=2, gap=0.3))
    assert one.short() == []
    assert (one.stream_kb, one.peak_mb, one.files) == (1024, 150, 99)
    assert (one.active_gap_ms, one.idle_gap_ms) == (300, 10_500)
    text = told(one)
    assert "10 idle, 2 active; 12 open at once; 12 whole" in text
    assert "p50 2.0, p99 3.0 ms, of 3 probes" in text
    assert "SHORT" not in text


def test_a_starved_stream_and_a_wrong_answer_fall_short() -> None:
    one = found(idle=Tally(requests=9, errors=1, problems=["lost"]), active=Tally(requests=2))
    assert one.short() == ["1 errors", "1 streams were not whole"]
    assert "problem            lost" in told(one)


def test_streams_that_were_never_open_together_are_no_crowd() -> None:
    one = found(files=93, idle=Tally(requests=10), active=Tally(requests=2))
    assert one.open == 6
    assert one.stream_kb == 2048
    assert [reason[:25] for reason in one.short()] == ["only 6 streams were open "]


def test_a_client_or_an_engine_without_air_makes_it_void() -> None:
    one = found(idle=Tally(requests=10), active=Tally(requests=2))
    for name in ("engine_cpu_s", "client_cpu_s"):
        busy = msgspec.structs.replace(one, **{name: 8.1})
        assert [reason.partition(":")[0] for reason in busy.short()] == ["void"]


def test_streams_outlast_what_is_measured_and_none_is_asked_for_nothing() -> None:
    script = Script(tiny_bundle("simulated", vocabulary=4160, context=0), tokens_max=2000)
    flows = {flow.name: flow for flow in flows_of(WISH, script)}
    assert set(flows) == {"idle", "active", "probes", "documents"}
    assert (flows["idle"].model, flows["active"].shape) == (QUIET_MODEL, "held")
    for name, step_s in (("idle", WISH.idle_step_s), ("active", WISH.active_step_s)):
        assert flows[name].tokens * step_s > WISH.start_s + WISH.duration_s
        assert flows[name].text == script.text(flows[name].tokens)
    assert {flow.name for flow in flows_of(Wish(idle=0, active=1), script)} == set(flows) - {"idle"}
    firsts = sorted(flow.prompt.first for flow in flows.values())
    assert min(late - early for early, late in pairwise(firsts)) > 5_000_000


def test_both_engines_stand_behind_the_gateway(tmp_path: Path) -> None:
    wanted = crowded(Wish(processes=2, arguments=("--x",)), 77)
    assert wanted.arguments == ("--processes", "2", "--x")
    command = wanted.kind.command(Place(1, 2, 3, tmp_path, tmp_path))
    urls = {command[at + 1] for at, word in enumerate(command) if word == "--worker"}
    assert urls == {"grpc://127.0.0.1:3", "grpc://127.0.0.1:77"}
    assert wanted.kind.equip is not None
    assert crowded(Wish(equipped=False), 77).kind.equip is None


def test_too_few_files_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    was = resource.getrlimit(resource.RLIMIT_NOFILE)
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    with pytest.raises(BenchError, match=r"5,000 open files are needed and 4,096 allowed.*3,584"):
        crowd.raise_files(5000)
    crowd.raise_files(1000)
    assert set_to == []
    crowd.raise_files(4096)
    assert set_to == [(4096, 4096)]
    monkeypatch.undo()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == was


def test_open_files_of_a_tree_are_counted_and_of_nobody_are_none() -> None:
    before = files_of(os.getpid())
    with open(os.devnull) as one, open(os.devnull) as other:
        assert files_of(os.getpid()) >= before + 2
        assert one.fileno() != other.fileno()
    assert files_of(2**22 + 1) == 0
