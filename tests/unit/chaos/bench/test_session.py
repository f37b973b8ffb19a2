import io
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from smg_chaos.bench.bench import Plan, turned
from smg_chaos.bench.children import BenchError
from smg_chaos.bench.figures import machine
from smg_chaos.bench.figures.measurement import Lengths
from smg_chaos.bench.gateways.gateways import Gateway
from smg_chaos.bench.load.workloads import WORKLOADS, paced
from smg_chaos.bench.options import Options
from smg_chaos.bench.session import base_of, plan_of


def planned(tmp_path: Path, **given: Any) -> tuple[Plan, str]:
    said = io.StringIO()
    options = Options(peers=tmp_path / "peers", **given)
    return plan_of(options, tmp_path / "out", Console(file=said, width=200)), said.getvalue()


def plan(tmp_path: Path, **given: Any) -> Plan:
    return planned(tmp_path, **given)[0]


def installed(tmp_path: Path, *names: str) -> None:
    for name in names:
        (tmp_path / "peers" / name / "bin").mkdir(parents=True)
        (tmp_path / "peers" / name / "bin" / name).touch()


def test_without_a_peer_this_gateway_goes_alone_and_says_how_that_can_change(
    tmp_path: Path,
) -> None:
    alone, text = planned(tmp_path)
    assert [one.label for one in alone.gateways] == ["smg-node"]
    assert "make bench-peers" in text


def test_an_installed_peer_comes_along(tmp_path: Path) -> None:
    installed(tmp_path, "smg")
    both = plan(tmp_path)
    assert [one.label for one in both.gateways] == ["smg-node", "smg"]
    assert base_of(both) == "smg"
    assert [one.name for one in both.workloads] == [
        "short",
        "stream1",
        "burst",
        "paced-64",
        "paced-256",
    ]


def test_before_a_vendor_the_peer_is_litellm(tmp_path: Path) -> None:
    alone, text = planned(tmp_path, workloads=("vendor-native",))
    assert [one.label for one in alone.gateways] == ["smg-node"]
    assert "litellm is not installed" in text
    installed(tmp_path, "smg", "litellm")
    both = plan(tmp_path, workloads=("short", "vendor-native"))
    assert [one.label for one in both.gateways] == ["smg-node", "litellm"]
    assert base_of(both) == "litellm"


def test_a_peer_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="make bench-peers"):
        plan(tmp_path, gateways=("smg-node", "litellm"))


def test_two_of_our_own_are_compared_with_the_first(tmp_path: Path) -> None:
    two = plan(tmp_path, gateways=("smg-node", "b:smg-node --processes 1"))
    assert base_of(two) == "smg-node"
    assert base_of(plan(tmp_path, gateways=("smg-node",))) is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"gateways": ("smg-node", "smg-node")}, "same label"),
        ({"workloads": ("shorts",)}, "shorts"),
        ({"workloads": ("vendor",), "gateways": ("smg-node", "smg")}, "not in front of a vendor"),
        ({"url": "ftp://x"}, "http://HOST:PORT"),
        ({"url": "http://x", "gateways": ("smg",)}, "either"),
        ({"url": "http://x:1", "pid": 2**22 + 1}, "no process"),
        ({"tokenizer": Path("/")}, "no tokenizer"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plan(tmp_path, **given)


def test_a_gateway_that_runs_already_is_a_target(tmp_path: Path) -> None:
    target = plan(tmp_path, url="http://127.0.0.1:81", model="m", pid=os.getpid()).target
    assert target is not None
    assert (target.host, target.port, target.model, target.pid) == (
        "127.0.0.1",
        81,
        "m",
        os.getpid(),
    )


def test_every_gateway_begins_a_round_as_often_as_the_others() -> None:
    gateways = [Gateway(label, "h", 1, 0, None, "", None) for label in "abc"]
    rounds = ["".join(one.label for one in turned(gateways, number)) for number in range(4)]
    assert rounds == ["abc", "bca", "cab", "abc"]


def test_held_streams_outlast_warm_up_and_measurement() -> None:
    lengths = Lengths(warmup_s=0.5, duration_s=3.0)
    assert lengths.held_s(paced(1)) >= lengths.warmup(paced(1)) + 3.0 + 0.5
    mixed = WORKLOADS["mixed"]
    assert lengths.counts_s(mixed) == 24.0
    assert lengths.held_s(mixed) >= lengths.warmup(mixed) + 24.0 + 0.5


def test_what_it_was_measured_on_is_told() -> None:
    told = machine.describe()
    assert told["cores"] >= 1
    assert len(told["load_average"]) == 3
    assert told["libraries"]["uvloop"]
    assert {"clock_source", "nice", "kernel", "cpu_pressure_10s", "commit"} <= told.keys()


def test_with_tools_this_gateway_goes_alone_with_a_client_process_for_runs(tmp_path: Path) -> None:
    installed(tmp_path, "smg")
    planned = plan(tmp_path, workloads=("tools",))
    assert [one.label for one in planned.gateways] == ["smg-node"]
    assert [one.name for one in planned.workloads] == ["tools-500-alone", "tools-500"]
    assert planned.client_processes == 2
    assert planned.load.tools.runs_per_s == 50
    with pytest.raises(ValueError, match="smg: not with tools"):
        plan(tmp_path, workloads=("tools",), gateways=("smg-node", "smg"))
    with pytest.raises(ValueError, match="not with --url"):
        plan(tmp_path, workloads=("tools",), url="http://127.0.0.1:1")
