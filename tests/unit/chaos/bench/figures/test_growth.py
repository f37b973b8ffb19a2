import cProfile
from pathlib import Path

import pytest

from smg_chaos.bench.figures.growth import WORKERS, growths, with_workers
from smg_chaos.bench.figures.profiling import profiled, said_of
from smg_chaos.bench.figures.rows import Figure
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS, Place, Wanted
from smg_chaos.bench.load.workload import Load
from smg_chaos.bench.load.workloads import prompts


def place(tmp_path: Path) -> Place:
    return Place(1, 2, 3, tmp_path, tmp_path)


def test_each_table_has_a_workload_or_a_gateway_for_every_number() -> None:
    for growth in growths():
        assert len(growth.by) == len(growth.workloads) * len(growth.gateways)
        assert [number for number, _ in growth.lines([])] == list(growth.by)
        names = {(work.name, gate.label) for work in growth.workloads for gate in growth.gateways}
        assert len(names) == len(growth.by)


def test_figures_stand_at_their_number() -> None:
    growth = next(one for one in growths() if one.by == WORKERS)
    figure = Figure(
        workload=growth.workloads[0].name, gateway="workers-8", unit="µs per request", values=[]
    )
    assert growth.lines([figure]) == [(1, None), (8, figure), (64, None)]


@pytest.mark.parametrize("count", WORKERS)
def test_one_engine_is_many_workers(count: int, tmp_path: Path) -> None:
    wanted = with_workers(count, ["--flag"])
    command = wanted.kind.command(place(tmp_path))
    urls = {command[at + 1] for at, word in enumerate(command) if word == "--worker"}
    assert len(urls) == count
    assert all(url.startswith("grpc://127.0.0.") and url.endswith(":3") for url in urls)
    assert wanted.arguments == ["--flag"]


def test_long_prompts_are_asked_by_few_and_are_as_long_as_was_said() -> None:
    [flow] = prompts(10_000).flows(Load(clients=999), None)
    assert flow.prompt.sizes == (26_000,)
    assert flow.connections == 8


def test_a_gateway_is_profiled_where_it_would_run(tmp_path: Path) -> None:
    wanted = profiled(Wanted("a", KINDS[EQUIPPED], ("--x",)), tmp_path / "p.out")
    plain = KINDS[EQUIPPED].command(place(tmp_path))
    command = wanted.kind.command(place(tmp_path))
    assert command[1:5] == ["-m", "cProfile", "-o", str(tmp_path / "p.out")]
    assert [command[0], *command[5:]] == plain
    assert wanted.kind.equip is KINDS[EQUIPPED].equip


def test_a_profile_is_told_and_that_there_is_none_as_well(tmp_path: Path) -> None:
    path = tmp_path / "p.out"
    assert "cannot be read" in said_of(path)
    path.write_bytes(b"garbage")
    assert "cannot be read" in said_of(path)
    cProfile.run("sorted(range(9))", str(path))
    assert "sorted" in said_of(path)


def test_processes_are_counted_behind_all_other_flags() -> None:
    growth = growths(["--flag"], (1, 4))[-1]
    assert [one.arguments for one in growth.gateways] == [
        ("--flag", "--processes", "1"),
        ("--flag", "--processes", "4"),
    ]
    assert growth.by == (1, 4)
