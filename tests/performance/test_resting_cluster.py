"""What nodes of a cluster cost that have nothing to do: wake-ups, which no crowd on the machine makes more of.

Two probes a second and their answers are six wake-ups of the loop; the threads of gRPC's library, which serves the
streams, make ten more of almost nothing. What hints and registers would add was as much again.
"""

from pathlib import Path
from typing import Final

import pytest

from smg_chaos.bench.resting import measured
from smg_node.system_clock import SystemClock

pytestmark = pytest.mark.integration

WAKE_UPS_MAX_PER_S: Final = 24


async def test_two_nodes_at_rest_wake_up_for_little_but_their_probes(tmp_path: Path) -> None:
    clock_s = SystemClock().monotonic_s
    found = await measured(2, tmp_path / "cluster", clock_s, seconds=4.0, settle_s=12.0)
    assert found.nodes == 2
    assert found.seconds >= 4.0
    # They probe each other, so there are packets and something wakes up for them.
    assert found.datagrams_per_s > 0
    assert found.bytes_per_s > found.datagrams_per_s
    assert 0 < found.wake_ups_per_s <= WAKE_UPS_MAX_PER_S
    assert 0 < found.cpu_percent <= found.cpu_percent_max
    assert found.pss_mb > 1
    assert found.start_cpu_s > 0
