"""Duty: who writes and who stands by, for any standings; and how a node comes to stand as it does."""

from typing import Final, get_args

from hypothesis import given
from hypothesis import strategies as st

from smg_node.discovery.duty import (
    FAILING_MS,
    RECOVERED_MS,
    Candidate,
    Duty,
    OwnStanding,
    Standing,
    duty,
    is_fit,
)

RANKED: Final = ("a", "b", "c", "d")
STANDINGS: Final[tuple[Standing, ...]] = get_args(Standing)


def stands(**said: tuple[Standing, int]) -> dict[str, Candidate]:
    return {name: Candidate(*one) for name, one in said.items()}


def test_the_first_two_watch_and_the_first_writes() -> None:
    all_fine = stands(a=("ok", 1), b=("ok", 1), c=("waiting", 1))
    assert duty(RANKED, all_fine) == Duty("a", "b", ("a", "b"))
    assert duty(RANKED, {}) == Duty("", "", ())
    assert duty(RANKED, stands(c=("waiting", 0))) == Duty("c", "", ("c",))


def test_who_starts_takes_over_only_when_it_has_seen_something() -> None:
    assert duty(RANKED, stands(a=("starting", 9), b=("ok", 9))).writer == "b"
    assert duty(RANKED, stands(a=("starting", 9), b=("waiting", 9))).writer == "a"
    assert duty(RANKED, stands(a=("ok", 0), b=("ok", 9))).writer == "a"


def test_who_fails_for_long_is_replaced_and_goes_on_trying() -> None:
    short: tuple[Standing, int] = ("failing", FAILING_MS - 1)
    long: tuple[Standing, int] = ("failing", FAILING_MS)
    assert duty(RANKED, stands(a=short, b=("ok", 1))).writer == "a"
    after = duty(RANKED, stands(a=long, b=("ok", 1), c=("waiting", 1)))
    assert after == Duty("b", "c", ("a", "b", "c"))
    back = stands(a=("recovering", 1), b=("ok", 1), c=("waiting", 1))
    assert duty(RANKED, back) == Duty("b", "a", ("a", "b"))
    well = stands(a=("recovering", RECOVERED_MS), b=("ok", 1))
    assert duty(RANKED, well).writer == "a"


def test_where_nobody_is_fit_somebody_tries() -> None:
    everyone = stands(a=("failing", 99_999), b=("failing", 99_999), c=("recovering", 1))
    assert duty(RANKED, everyone).writer == "c"
    nobody = stands(a=("failing", 99_999), b=("failing", 99_999))
    assert duty(RANKED, nobody) == Duty("a", "", ("a", "b"))


CANDIDATES: Final = st.dictionaries(
    st.sampled_from(RANKED),
    st.builds(Candidate, st.sampled_from(STANDINGS), st.sampled_from((0, 9_999, 10_000, 30_000))),
)


@given(CANDIDATES)
def test_there_is_one_writer_and_at_most_two_watches(found: dict[str, Candidate]) -> None:
    one = duty(RANKED, found)
    assert one == duty(RANKED, dict(reversed(list(found.items()))))
    assert bool(one.writer) == bool(found)
    assert one.writer != one.standby or not found
    answering = [
        name
        for name in one.watchers
        if not (found[name].standing == "failing" and found[name].since_ms >= FAILING_MS)
    ]
    assert len(answering) <= 2
    if any(is_fit(one_of) for one_of in found.values()):
        assert is_fit(found[one.writer])


def walk(*steps: tuple[bool, bool | None, int]) -> list[Standing]:
    """Return how a node stands after each of (watching, answers, ms since the last step)."""
    now_ms = failing_ms = 1_000
    standing, found = OwnStanding("waiting", now_ms), []
    was: bool | None = None
    for watching, answers, apart_ms in steps:
        now_ms += apart_ms
        if answers is False and was is not False:
            failing_ms = now_ms
        was = answers
        standing = standing.after(
            watching=watching, answers=answers, failing_ms=failing_ms, now_ms=now_ms
        )
        found.append(standing.standing)
    return found


def test_one_that_starts_and_never_hears_anything_fails() -> None:
    said = walk((True, None, 0), (True, None, FAILING_MS - 1), (True, None, 1), (True, True, 1))
    assert said == ["starting", "starting", "failing", "recovering"]


def test_a_short_failure_is_forgotten_and_a_long_one_not_for_half_a_minute() -> None:
    short = walk((True, True, 0), (True, False, 1), (True, True, FAILING_MS - 1))
    assert short == ["ok", "failing", "ok"]
    long = walk(
        *((True, False, 1), (True, False, FAILING_MS), (True, True, 1)),
        *((True, True, RECOVERED_MS - 1), (True, True, 1)),
    )
    assert long == ["failing", "failing", "recovering", "recovering", "ok"]
    relapse = walk((True, False, 1), (True, True, FAILING_MS), (True, False, 5))
    assert relapse == ["failing", "recovering", "failing"]


def test_who_is_not_to_watch_waits_and_what_failed_long_is_not_tried_at_once() -> None:
    assert walk((True, True, 0), (False, None, 1)) == ["ok", "waiting"]
    failed = ((True, False, 1), (True, False, FAILING_MS))
    assert walk(*failed, (False, None, 1), (False, None, RECOVERED_MS))[2:] == [
        "failing",
        "waiting",
    ]


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from((None, True, False)), st.integers(0, 40_000)),
        max_size=20,
    )
)
def test_whatever_happens_a_standing_is_one_of_the_words_and_ends_well(
    steps: list[tuple[bool, bool | None, int]],
) -> None:
    well = [(True, True, RECOVERED_MS)] * 3
    said = walk(*steps, *well)
    assert set(said) <= set(STANDINGS)
    assert said[-1] == "ok"
