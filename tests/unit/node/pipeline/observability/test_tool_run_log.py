"""Tool run log: bounded, by request."""

from smg_node.core.journey import Ran
from smg_node.pipeline.observability.tool_run_log import RUNS_MAX, ToolRunLog


def ran(number: int) -> Ran:
    return Ran(number, "s", "t", "allow", "default", "ok")


def test_the_oldest_request_goes_first() -> None:
    log = ToolRunLog(requests_max=2)
    for number in range(3):
        log.add(f"r{number}", ran(number))
    assert log.of("r0") == ()
    assert log.of("r2") == (ran(2),)


def test_a_request_keeps_its_first_runs() -> None:
    log = ToolRunLog()
    for number in range(RUNS_MAX + 1):
        log.add("r", ran(number))
    assert log.of("r") == tuple(ran(number) for number in range(RUNS_MAX))
