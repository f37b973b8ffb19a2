from collections.abc import Sequence

import pytest
from typer.testing import CliRunner

from smg_chaos.bench import resting
from smg_chaos.bench.children import BenchError
from smg_chaos.bench.resting import Rest, table


def rest(nodes: int, cpu: float) -> Rest:
    return Rest(
        nodes=nodes,
        seconds=30.0,
        cpu_percent=cpu,
        cpu_percent_max=cpu + 0.01,
        wake_ups_per_s=17.7,
        datagrams_per_s=4.4,
        bytes_per_s=362.4,
        pss_mb=52.14,
        start_cpu_s=1.744,
    )


def test_the_table_has_a_line_for_each_cluster() -> None:
    assert table([rest(3, 0.192), rest(100, 0.2)]).splitlines() == [
        "nodes      CPU     most  wake-ups  packets     sent       PSS  start",
        "    3  0.192 %  0.202 %    17.7/s    4.4/s  362 B/s   52.1 MB  1.74 s",
        "  100  0.200 %  0.210 %    17.7/s    4.4/s  362 B/s   52.1 MB  1.74 s",
    ]


def test_a_cluster_that_does_not_come_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Sequence[str]] = []

    async def refused(*_: object, flags: Sequence[str], **__: object) -> Rest:
        told.append(flags)
        raise BenchError("node n0 ended with code 2")

    monkeypatch.setattr(resting, "measured", refused)
    result = CliRunner().invoke(resting.app, ["--flag", "--mesh.profile 'wan'"])
    assert result.exit_code == 1
    assert "smg-chaos resting: node n0 ended with code 2" in result.output
    assert told == [["--mesh.profile", "wan"]]
