import gc

from prometheus_client import CollectorRegistry

from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.gc_pauses import GcPauses, gc_pauses
from smg_node.telemetry.metrics.meters import Meters


def test_pauses_add_up_by_generation() -> None:
    now_s = iter((1.0, 1.5, 2.0, 2.25, 3.0, 5.0))
    pauses = GcPauses(lambda: next(now_s))
    # The end of a look that began before the watch did.
    pauses.called("stop", {"generation": 2})
    for generation in (0, 0, 2):
        pauses.called("start", {"generation": generation})
        pauses.called("stop", {"generation": generation})
    assert pauses.read() == {("0",): 0.75, ("1",): 0.0, ("2",): 2.0}


def test_what_python_does_is_counted_while_it_is_watched() -> None:
    meters = Meters(CollectorRegistry(), version="1")
    before = list(gc.callbacks)

    def counted() -> float:
        found = meters.registry.get_sample_value(
            "smg_node_gc_pause_seconds_total", {"generation": "2"}
        )
        assert found is not None
        return found

    with gc_pauses(meters, SystemClock().monotonic_s):
        gc.collect()
        seconds = counted()
        assert seconds > 0
    assert gc.callbacks == before
    gc.collect()
    assert counted() == seconds
