"""What placing costs is measured beside streams that stay open, and nothing of a measurement is left behind."""

import json

from typer.testing import CliRunner

from smg_chaos.bench.micro.decision_growth import STREAMS, WORKERS, Crowd, app
from smg_chaos.cli import app as chaos


def test_streams_stay_open_and_measured_calls_do_not() -> None:
    crowd = Crowd("cache_aware", 8, 64)
    for _ in range(3):
        assert 0 < crowd.burst() < 1
        assert sum(worker.load.inflight for worker in crowd.workers) == 64
        assert sum(worker.load.tokens for worker in crowd.workers) == 0
    assert not any(worker.load.full for worker in crowd.workers)


def test_there_is_a_row_for_each_number_of_workers_and_streams() -> None:
    given = ["--policy", "least_load", "--rounds", "1", "--bursts", "1"]
    rows = json.loads(CliRunner().invoke(app, [*given, "--json"]).stdout)
    assert [(row["workers"], row["streams"]) for row in rows] == [
        (workers, streams) for workers in WORKERS for streams in STREAMS
    ]
    assert all(0 < row["best_us"] <= row["median_us"] <= row["worst_us"] for row in rows)
    assert "64 workers,  1000 streams" in CliRunner().invoke(app, given).stdout
    assert "decision-growth" in CliRunner().invoke(chaos, ["--help"]).stdout
