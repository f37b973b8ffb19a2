import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.http.middleware.drain_phases import CUT_S, QUIET_S, Drain, DrainTimes, Phase, Step
from support.tools.example_counts import example_count


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


def test_a_node_that_was_set_aside_long_enough_does_not_settle_again() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(90, on=True)
    drain.begin(100)
    assert drain.advance(100, 1) == [Step.CLOSE_LISTENERS]
    assert (phase_of(drain), drain.wait_s(100)) == (Phase.CLOSING, 180)


def test_one_that_was_set_aside_just_now_settles_for_the_rest() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(98, on=True)
    drain.begin(100)
    assert drain.advance(102.9, 0) == []
    assert drain.advance(103, 0) == [Step.CLOSE_LISTENERS]


def test_one_that_was_taken_back_settles_as_any_other() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(90, on=True)
    drain.set_aside(95, on=False)
    drain.begin(100)
    assert drain.advance(104.9, 0) == []


def test_it_says_at_any_moment_how_long_what_is_under_way_will_take() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    assert drain.times(100) == DrainTimes(0, None, 185)
    drain.set_aside(100, on=True)
    assert drain.times(102) == DrainTimes(3, None, 185)
    assert drain.times(200) == DrainTimes(0, None, 185)
    drain.set_aside(200, on=False)
    drain.begin(300)
    assert drain.times(301) == DrainTimes(4, 184, 185)
    drain.advance(305, 2)
    assert drain.times(315) == DrainTimes(0, 170, 185)
    drain.advance(485, 2)
    assert drain.times(485) == DrainTimes(0, 0, 185)
    drain.advance(487, 0)
    assert drain.times(487) == DrainTimes(0, 0, 185)


def test_as_long_as_work_comes_balancers_have_not_noticed() -> None:
    drain = begun()
    assert drain.takes_work(104.8)
    assert drain.advance(105, 1) == []
    assert drain.wait_s(105) == 104.8 + QUIET_S - 105
    assert drain.takes_work(105.7)
    assert drain.advance(106.6, 1) == []
    assert drain.advance(106.7, 1) == [Step.CLOSE_LISTENERS]
    assert not drain.takes_work(106.8)


def test_whoever_never_moves_on_is_refused_after_three_times_as_long() -> None:
    drain = begun()
    for tenths in range(1000, 1150):
        assert drain.takes_work(tenths / 10)
        assert drain.advance(tenths / 10, 1) == []
    assert drain.takes_work(114.9)
    assert drain.advance(115, 1) == [Step.CLOSE_LISTENERS]
    assert drain.wait_s(115) == 170, "what is open is cut off when it would have been"


def test_a_drained_node_goes_on_to_take_what_balancers_still_send() -> None:
    drain = Drain(settle_s=5, grace_s=180)
    drain.set_aside(100, on=True)
    assert drain.takes_work(104.5)
    assert not drain.refuses_work(105.4)
    assert drain.takes_work(105.4)
    assert drain.times(106).settle_left_s == pytest.approx(0.4)
    assert drain.refuses_work(106.4)
    assert not drain.takes_work(106.4)
    drain.begin(107)
    assert drain.advance(107, 0) == [Step.CLOSE_LISTENERS]


def test_with_no_time_to_settle_nothing_is_taken_however_much_comes() -> None:
    drain = Drain(settle_s=0, grace_s=180)
    drain.set_aside(100, on=True)
    assert not drain.takes_work(100)


@given(
    settle_s=st.floats(0, 30),
    grace_s=st.floats(0, 60),
    gaps_s=st.lists(st.floats(0, 4), max_size=40),
    aside_s=st.none() | st.floats(0, 40),
)
def test_it_never_takes_work_for_too_long_nor_cuts_before_or_after_it_said(
    settle_s: float, grace_s: float, gaps_s: list[float], aside_s: float | None
) -> None:
    drain, now_s = Drain(settle_s=settle_s, grace_s=grace_s), 100.0
    since_s = now_s if aside_s is None else now_s - aside_s
    if aside_s is not None:
        drain.set_aside(since_s, on=True)
    drain.begin(now_s)
    cut_s = max(now_s, since_s + settle_s) + grace_s
    closed = False
    for gap_s in gaps_s:
        now_s += gap_s
        steps = drain.advance(now_s, 1)
        closed = closed or Step.CLOSE_LISTENERS in steps
        assert (Step.CUT_REQUESTS in steps) <= (now_s >= cut_s)
        if drain.phase < Phase.CUTTING:
            assert now_s < cut_s
        taken = drain.takes_work(now_s)
        assert taken is not closed
        assert not taken or now_s <= since_s + 3 * settle_s
        if now_s < since_s + settle_s:
            assert taken


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


@settings(max_examples=example_count(200))
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
