from hypothesis import given
from hypothesis import strategies as st

from smg_node.processes.replication.open_calls import OpenCalls

WORKERS = ("a", "b", "c")
LOADS = st.dictionaries(
    st.sampled_from(WORKERS), st.tuples(st.integers(0, 9), st.integers(0, 900)), max_size=3
)
SAID = st.lists(st.tuples(st.sampled_from(("1-1", "2-2", "control")), LOADS), max_size=12)


@given(SAID)
def test_sums_are_those_of_what_each_process_said_last(
    said: list[tuple[str, dict[str, tuple[int, int]]]],
) -> None:
    calls, last = OpenCalls(), dict[str, dict[str, tuple[int, int]]]()
    for process, loads in said:
        before = {worker: last.get(process, {}).get(worker, (0, 0)) for worker in WORKERS}
        changed = calls.set(process, loads)
        last[process] = loads
        assert changed == [one for one in WORKERS if before[one] != loads.get(one, (0, 0))]
    for worker in WORKERS:
        requests = sum(loads.get(worker, (0, 0))[0] for loads in last.values())
        tokens = sum(loads.get(worker, (0, 0))[1] for loads in last.values())
        assert calls.total.get(worker, (0, 0)) == (requests, tokens)
        for process, loads in last.items():
            own = loads.get(worker, (0, 0))
            assert calls.others(process, worker) == (requests - own[0], tokens - own[1])


def test_a_process_that_dies_has_nothing_open() -> None:
    calls = OpenCalls()
    calls.set("1-1", {"a": (2, 200)})
    calls.set("2-2", {"a": (1, 10)})
    assert calls.set("1-1", {}) == ["a"]
    assert calls.total == {"a": (1, 10)}
    assert calls.others("2-2", "a") == (0, 0)
