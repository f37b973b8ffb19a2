import pytest

from smg_node.wiring.base import threads_of


@pytest.mark.parametrize(("processes", "threads"), [(0, 2), (1, 2), (2, 1), (16, 1)])
def test_each_of_several_processes_has_one_thread_for_long_prompts(
    processes: int, threads: int
) -> None:
    assert threads_of(processes) == threads
