from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.http.drain import CUT_S, Drain, Phase, Step


def begun() -> Drain:
    drain = Drain(settle_s=5, grace_s=180)
    drain.begin(100)
    return drain


def phase_of(drain: Drain) -> Phase:
    return drain.phase


def test_a_serving_node_does_nothing_by_itself() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    assert drain.advance(1e9, 0) == []
    assert drain.advance(1e9, 0, hurried=True) == []
    assert (drain.draining, drain.refusing, drain.wait_s(0)) == (False, False, None)


def test_settling_says_not_ready_but_serves_on_even_when_idle() -> None:
    drain = begun()
    assert drain.advance(104.9, 0) == []
    assert phase_of(drain) is Phase.SETTLING
    assert (drain.draining, drain.refusing) == (True, False)
    assert drain.wait_s(104) == 1


def test_after_settling_listeners_close_and_an_idle_node_is_done() -> None:
    drain = begun()
    assert drain.advance(105, 0) == [Step.CLOSE_LISTENERS]
    assert phase_of(drain) is Phase.OVER
    assert drain.wait_s(105) is None


def test_running_requests_may_finish_within_the_grace() -> None:
    drain = begun()
    assert drain.advance(105, 2) == [Step.CLOSE_LISTENERS]
    assert (drain.phase, drain.refusing) == (Phase.CLOSING, True)
    assert drain.advance(200, 1) == []
    assert drain.advance(201, 0) == []
    assert phase_of(drain) is Phase.OVER


def test_what_outlives_the_grace_is_cut_and_then_left_alone() -> None:
    drain = begun()
    drain.advance(105, 2)
    assert drain.advance(285, 2) == [Step.CUT_REQUESTS]
    assert phase_of(drain) is Phase.CUTTING
    assert drain.advance(285 + CUT_S, 1) == []
    assert phase_of(drain) is Phase.OVER


def test_hurry_leads_from_settling_straight_to_the_cut() -> None:
    drain = begun()
    assert drain.advance(101, 3, hurried=True) == [Step.CLOSE_LISTENERS, Step.CUT_REQUESTS]
    assert phase_of(drain) is Phase.CUTTING
    assert drain.advance(101, 0, hurried=True) == []
    assert phase_of(drain) is Phase.OVER


def test_hurry_does_not_shorten_the_cut() -> None:
    drain = begun()
    drain.advance(101, 3, hurried=True)
    assert drain.advance(101.5, 3, hurried=True) == []
    assert phase_of(drain) is Phase.CUTTING


def test_a_second_beginning_changes_nothing() -> None:
    drain = begun()
    drain.begin(104)
    assert drain.wait_s(104) == 1


def test_a_node_set_aside_is_unready_at_once_and_refuses_work_once_balancers_noticed() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(100, on=True)
    assert (drain.draining, drain.aside, drain.refusing) == (True, True, False)
    assert not drain.refuses_work(104.9)
    assert drain.refuses_work(105)
    assert drain.advance(1e9, 0) == []
    drain.set_aside(103, on=True)
    assert drain.refuses_work(105), "asking twice does not begin anew"


def test_a_node_that_is_taken_back_serves_as_before() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(100, on=True)
    drain.set_aside(200, on=False)
    assert (drain.draining, drain.aside, drain.refuses_work(1e9)) == (False, False, False)


def test_a_node_set_aside_leaves_like_any_other() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(100, on=True)
    drain.begin(200)
    assert drain.advance(205, 0) == [Step.CLOSE_LISTENERS]
    drain.set_aside(206, on=False)
    assert drain.draining
    assert drain.refuses_work(206)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.integers(0, 3), st.booleans()), min_size=1, max_size=30
    )
)
def test_phases_only_go_forward_and_each_step_is_taken_once(
    moments: list[tuple[float, int, bool]],
) -> None:
    drain = begun()
    now_s, phases = 100.0, [drain.phase]
    steps: list[Step] = []
    for later_s, inflight, hurried in moments:
        now_s += later_s
        steps += drain.advance(now_s, inflight, hurried=hurried)
        phases.append(drain.phase)
        left_s = drain.wait_s(now_s)
        assert left_s is None or left_s >= 0
    assert phases == sorted(phases)
    assert len(steps) == len(set(steps))
    if drain.refusing:
        assert steps[0] is Step.CLOSE_LISTENERS
