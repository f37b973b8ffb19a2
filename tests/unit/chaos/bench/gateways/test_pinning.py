import os
import subprocess
import sys

import pytest

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.gateways.pinning import pin, read_pins, told


def test_roles_have_ranges_and_single_cores() -> None:
    pins = read_pins("gateway=0-3, engine=4+6-7,client=5")
    assert pins == {"gateway": {0, 1, 2, 3}, "engine": {4, 6, 7}, "client": {5}}
    assert told(pins) == "gateway: 0-3, engine: 4+6-7, client: 5"
    assert told(read_pins("client=1")) == "client: 1, gateway: any, engine: any"
    assert told(read_pins("")) == "none: gateway, engine and client share all cores"


@pytest.mark.parametrize(
    "text",
    ["0-3", "gateway", "gateway=", "gateway=a", "gateway=1-", "gateway=-1", "nobody=1",
     "gateway=1,gateway=2", "gateway=3-1", "gateway=1++2", "gateway=1-2-3", "gateway=99999"],
)  # fmt: skip
def test_what_names_no_cores_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--pin"):
        read_pins(text)


def test_a_process_gets_the_cores_of_its_role_and_no_others() -> None:
    core = min(os.sched_getaffinity(0))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        pin(child.pid, "engine", {"gateway": frozenset({core})})
        assert os.sched_getaffinity(child.pid) == os.sched_getaffinity(0)
        pin(child.pid, "gateway", {"gateway": frozenset({core})})
        assert os.sched_getaffinity(child.pid) == {core}
        with pytest.raises(BenchError, match="the engine cannot be pinned to cores 9999"):
            pin(child.pid, "engine", {"engine": frozenset({9_999})})
    finally:
        child.kill()
        child.communicate()
    pin(child.pid, "gateway", {"gateway": frozenset({core})})
