"""What is late is told once, never too early, and soon."""

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.transport.deadline_queue import TICK_S, Deadlines
from support.tools.example_counts import example_count


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50), st.booleans()), max_size=40),
    st.floats(0.01, 3),
)
@settings(max_examples=example_count(100), deadline=None)
def test_everything_is_told_once_and_in_time(
    items: list[tuple[float, float, bool]], step_s: float
) -> None:
    deadlines: Deadlines = Deadlines()
    begins = sorted(enumerate(items), key=lambda one: one[1][0])
    told: dict[int, float] = {}
    now_s = 0.0
    while now_s < 110 or len(deadlines):
        while begins and begins[0][1][0] <= now_s:
            item, (_, lasts_s, removed) = begins.pop(0)
            deadlines.add(item, now_s + lasts_s)
            items[item] = (now_s, lasts_s, removed)
            if removed:
                deadlines.remove(item)
                deadlines.remove(item)
        for item in deadlines.due(now_s):
            assert item not in told
            told[item] = now_s
        now_s += step_s
    for item, (began_s, lasts_s, removed) in enumerate(items):
        assert (item in told) is not removed
        if not removed:
            late_s = told[item] - (began_s + lasts_s)
            assert -1e-6 <= late_s <= TICK_S + step_s + 1e-6
    assert deadlines.items() == []
    assert len(deadlines) == 0
