from smg_node.http.middleware.readiness_probers import FRESH_S, PROBERS_MAX, Probers


def test_the_last_word_to_each_counts_and_the_latest_comes_last() -> None:
    probers = Probers()
    probers.note("10.0.0.1", "haproxy", 100, ready=True)
    probers.note("10.0.0.2", "", 101, ready=True)
    probers.note("10.0.0.1", "haproxy", 102, ready=False)
    told = [(one.address, one.agent, one.ago_s, one.ready) for one in probers.views(103)]
    assert told == [("10.0.0.2", "", 2, True), ("10.0.0.1", "haproxy", 1, False)]


def test_who_has_not_asked_for_a_minute_is_no_prober_any_more() -> None:
    probers = Probers()
    probers.note("10.0.0.1", "", 100, ready=True)
    assert len(probers.views(100 + FRESH_S)) == 1
    assert probers.views(100 + FRESH_S + 0.1) == ()


def test_somebody_who_calls_himself_something_else_each_time_costs_nothing() -> None:
    probers = Probers()
    for number in range(10 * PROBERS_MAX):
        probers.note("10.0.0.1", f"{number} {'x' * 1000}", 100, ready=True)
    kept = probers.views(100)
    assert len(kept) == PROBERS_MAX
    assert kept[-1].agent.startswith(f"{10 * PROBERS_MAX - 1} ")
    assert max(len(one.agent) for one in kept) <= 80
