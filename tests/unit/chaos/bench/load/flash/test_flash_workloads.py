import pytest

from smg_chaos.bench.load.flash.flash_workloads import CROWD, FLASH, flash_crowds
from smg_chaos.bench.load.job import Job
from smg_chaos.bench.load.remote_client import share_of
from smg_chaos.bench.load.workload import STREAMS, Load
from smg_chaos.bench.load.workloads import chosen
from smg_chaos.bench.options import FlashLoad

LOAD = Load(held_s=2.0)


def test_a_crowd_has_its_usual_size_or_each_of_those_that_were_asked_for() -> None:
    assert [one.name for one in chosen(FLASH, [])] == [
        "flash-256",
        "flash1-1000",
        "flash-beside-1000",
    ]
    asked = FlashLoad(sizes=(10, 300))
    assert [one.name for one in chosen(["flash1"], [], None, asked)] == ["flash1-10", "flash1-300"]
    for workload, size in zip(flash_crowds("flash", asked), (10, 300), strict=True):
        assert workload.flows(LOAD, None)[0].connections == size
        assert f"{size} streams" in workload.says


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", FLASH)
def test_one_process_makes_a_crowd_and_another_reads_what_runs_beside_it(
    name: str, *, kept: bool
) -> None:
    (workload,) = flash_crowds(name, FlashLoad(sizes=(9,), kept=kept))
    flows = {flow.name: flow for flow in workload.flows(LOAD, None)}
    assert workload.first == workload.crowd == CROWD
    assert (flows[CROWD].shape, flows[CROWD].kept, flows[CROWD].stream) == ("flash", kept, True)
    assert flows[CROWD].tokens == (50 if name == "flash" else 1)
    job = Job(host="h", port=1, model="m", flows=tuple(flows.values()))
    shares = [share_of(job, number, 2).flows for number in range(2)]
    assert sorted(flow.connections for share in shares for flow in share if flow.name == CROWD) == [
        9
    ]
    if name == "flash-beside":
        assert (workload.unit, workload.clients_min, flows[STREAMS].gaps) == ("gap", 2, True)
        assert [flow.name for share in shares for flow in share] == [STREAMS, CROWD]
    else:
        assert (workload.unit, list(flows)) == ("first token", [CROWD])


def test_prompts_of_a_crowd_are_not_those_of_streams_beside_it() -> None:
    (workload,) = flash_crowds("flash-beside", FlashLoad())
    first = [flow.prompt.first for flow in workload.flows(LOAD, None)]
    assert len(set(first)) == 2
