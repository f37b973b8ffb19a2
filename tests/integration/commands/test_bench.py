"""`smg-chaos bench` as people run it: a real gateway, a table and rows, and nothing left behind."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smg_chaos.bench.children import free_ports
from smg_chaos.bench.figures.process_accounting import tree_of
from smg_chaos.bench.gateways.http_engine import Said
from support.processes.process import Process, running

pytestmark = pytest.mark.integration

BENCH = (sys.executable, "-m", "smg_chaos.cli", "bench")
WAIT_S = 120.0
QUICK = ("--duration-s", "0.5", "--warmup-s", "0.2", "--clients", "4")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.1)
    return condition()


def bench(folder: Path, *flags: str) -> tuple[int, str, dict[str, Any]]:
    results = folder / "results.json"
    out = ("--out", str(folder / "out"), "--json", str(results))
    with running([*BENCH, *flags, *out], folder=folder) as process:
        code = process.wait(WAIT_S)
        said = process.said()
    return code, said, json.loads(results.read_bytes()) if results.exists() else {}


def test_two_gateways_are_measured_side_by_side(tmp_path: Path) -> None:
    gateways = ("-g", "smg-node", "-g", "again:smg-node-equipped")
    workloads = ("-w", "short", "-w", "burst", "-w", "paced", "--streams", "48", "--rounds", "1")
    code, said, told = bench(tmp_path, *gateways, *workloads, *QUICK)
    rows, figures = told["rows"], told["figures"]
    # A busy machine may make a row void, never wrong.
    assert code in (0, 1), said
    assert len(rows) == 2 * 4
    # 48 paced streams, because the kernel tells CPU time in ticks of 10 ms: a few take less than one.
    assert all(row["errors"] == 0 and row["requests"] > 0 for row in rows), said
    assert all(row["gateway_cpu_s"] > 0 and row["pss_mb"] > 20 for row in rows)
    assert all(row["client_cpu_s"] and row["checked_completely"] > 0 for row in rows)
    first_round = [(row["workload"], row["gateway"]) for row in rows if row["round"] == 0]
    assert first_round[:4] == [
        ("short", "smg-node"),
        ("short", "again"),
        ("stream1", "smg-node"),
        ("stream1", "again"),
    ]
    assert {(one["workload"], one["gateway"]) for one in figures} == {
        (workload, gateway)
        for workload in ("short", "stream1", "burst", "paced-48")
        for gateway in ("smg-node", "again")
    }
    paced = [row for row in rows if row["workload"] == "paced-48"]
    assert all(row["tokens"] > 48 * 0.5 / 0.02 / 2 for row in paced)
    assert told["facts"]["machine"]["clock_source"]
    assert "µs per token" in said
    (folder,) = (tmp_path / "out").iterdir()
    assert (folder / "table.txt").read_text().strip() in said
    assert json.loads((folder / "rows.json").read_bytes()) == told


def test_a_gateway_is_measured_in_front_of_a_vendor(tmp_path: Path) -> None:
    wanted = ("-g", "smg-node", "-w", "vendor-native-burst", "-w", "vendor-translated-paced")
    _, said, told = bench(tmp_path, *wanted, "--rounds", "1", *QUICK)
    rows = told["rows"]
    assert all(row["errors"] == 0 and row["tokens"] > 0 for row in rows), said
    assert all(row["upstream"] == "vendor" and row["checked_completely"] > 0 for row in rows)
    assert all(row["gateway_cpu_s"] > 0 and row["engine_cpu_s"] > 0 for row in rows)
    assert [row["workload"] for row in rows] == [
        "vendor-native-stream1",
        "vendor-native-burst",
        "vendor-translated-paced",
    ]
    assert rows[1]["tokens"] == 129 * rows[1]["requests"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_what_it_started_and_shows_what_it_has(
    tmp_path: Path, number: signal.Signals
) -> None:
    flags = ("-g", "smg-node", "-w", "idle", "--rounds", "99", "--out", str(tmp_path / "out"))
    with running([*BENCH, *flags, *QUICK], folder=tmp_path) as process:
        process.wait_for(r"1/99 .*idle", WAIT_S)
        started = everything_below(process)
        assert len(started) >= 4, "the bench, a client, an engine and a gateway"
        process.signal(number)
        assert process.wait(WAIT_S) == 130
        assert "first token" in process.said()
        assert "which the engine alone takes" in process.said()
    assert eventually(lambda: not any(runs(pid) for pid in started))


def everything_below(process: Process) -> list[int]:
    return tree_of(process.pid)


def test_a_gateway_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    code, said, told = bench(tmp_path, "-g", "smg-node --no-such-flag 1", "-w", "idle", *QUICK)
    assert code == 1
    assert "smg-node ended with code 2" in said
    assert "no-such-flag" in said
    assert told == {}


def test_a_gateway_that_runs_already_can_be_loaded(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    said = tmp_path / "said.json"
    pieces = ["Hi", *(f" {number}" for number in range(200))]
    said.write_text(json.dumps({"model": "m", "pieces": pieces}))
    assert json.loads(said.read_text())["pieces"] == list(Said("m", tuple(pieces)).pieces)
    command = [sys.executable, "-m", "smg_chaos.bench.gateways.http_engine", str(port), str(said)]
    with running(command, folder=tmp_path) as server:
        server.wait_for("listening", WAIT_S)
        url = ("--url", f"http://127.0.0.1:{port}", "--pid", str(server.pid), "--model", "m")
        _, text, told = bench(tmp_path, *url, "-w", "burst", "--rounds", "1", *QUICK)
    rows = {row["workload"]: row for row in told["rows"]}
    assert rows["burst"]["errors"] == 0, text
    assert rows["burst"]["tokens"] == 129 * rows["burst"]["requests"] > 0
    assert rows["stream1"]["gateway_cpu_s"] > 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-w", "brust"), "burst"),
        (("-g", "nginx"), "smg-cached"),
        (("-g", "litellm", "--peers", "nowhere"), "make bench-peers"),
        (("-g", "smg-node", "-g", "litellm", "-w", "vendor", "--peers", "nowhere"), "bench-peers"),
    ],
)
def test_what_cannot_be_had_is_refused_at_once(
    tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    code, said, _ = bench(tmp_path, *flags)
    assert code in (1, 2)
    assert words in said
    assert "Traceback" not in said


CROWD = (sys.executable, "-m", "smg_chaos.cli", "crowd")
SMALL = ("--idle", "20", "--active", "5", "--idle-step-s", "2", "--duration-s", "1")


def test_a_crowd_is_read_to_its_last_token(tmp_path: Path) -> None:
    with running([*CROWD, *SMALL, "--no-equipped", "--out", str(tmp_path)], folder=tmp_path) as one:
        code = one.wait(WAIT_S)
        said = one.said()
    # A busy machine may make it void, never wrong.
    assert code in (0, 1), said
    (path,) = tmp_path.glob("crowd-*/found.json")
    found = json.loads(path.read_bytes())
    assert (found["whole"], found["errors"], found["problems"]) == (25, 0, []), said
    assert found["files"] > 25
    assert found["probes"] > 0
    assert found["idle_gap_ms"] >= 1000 > found["steady_mb"] > found["base_mb"] / 2
    assert "20 idle, 5 active" in said


def test_a_crowd_that_is_interrupted_leaves_nobody_behind(tmp_path: Path) -> None:
    with running([*CROWD, *SMALL, "--no-equipped", "--out", str(tmp_path)], folder=tmp_path) as one:
        one.wait_for("a first run", WAIT_S)
        started = everything_below(one)
        assert len(started) >= 6, "the bench, two clients, two engines and a gateway"
        one.signal(signal.SIGTERM)
        assert one.wait(WAIT_S) == 130
    assert eventually(lambda: not any(runs(pid) for pid in started))


def test_streams_are_measured_without_and_with_runs_of_tools_beside_them(tmp_path: Path) -> None:
    load = ("--streams", "4", "--runs-per-s", "8", "--result-bytes", "20000", "--rounds", "1")
    code, said, told = bench(tmp_path, "-g", "smg-node", "-w", "tools", *load, *QUICK)
    # A busy machine may make a row void, never wrong.
    assert code in (0, 1), said
    alone, beside = told["rows"]
    assert (alone["workload"], beside["workload"]) == ("tools-4-alone", "tools-4")
    for row in (alone, beside):
        assert row["errors"] == 0, said
        assert row["gap_ms"]["count"] > 0
        assert set(row["others_cpu_s"]) == {"the engine that calls tools", "the server of tools"}
    assert beside["flows"] == {"streams": 4, "runs": beside["requests"] - 4}
    assert "tools-4: p99 of the gaps between tokens" in said
