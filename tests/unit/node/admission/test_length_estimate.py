import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.length_estimate import (
    ANSWERS_KEPT,
    AT_ONCE_MAX,
    BATCH_MAX,
    FIRST_TOKENS,
    Answers,
    Estimates,
)

LENGTHS = st.one_of(st.integers(0, 40), st.integers(0, 5_000), st.integers(0, 1 << 42))


def percentile(lengths: list[int]) -> int:
    """The smallest of them that nineteen of twenty do not exceed."""
    kept = sorted(lengths[-ANSWERS_KEPT:])
    return kept[math.ceil(0.95 * len(kept)) - 1]


def test_of_whom_nothing_is_known_a_little_is_expected() -> None:
    assert Answers().expected == FIRST_TOKENS


@settings(deadline=None, max_examples=60)
@given(st.lists(LENGTHS, min_size=1, max_size=80), st.integers(1, 12))
def test_the_estimate_is_the_percentile_or_an_eighth_more(lengths: list[int], times: int) -> None:
    answers = Answers()
    seen: list[int] = []
    for tokens in lengths * times:
        answers.add(tokens)
        seen.append(tokens)
        answers.count()
        exact = percentile(seen)
        assert exact <= answers.expected <= exact * 1.125
    assert len(answers) == min(len(seen), ANSWERS_KEPT)


@settings(deadline=None, max_examples=60)
@given(st.lists(LENGTHS, min_size=1, max_size=80), st.integers(1, 12))
def test_unless_somebody_looks_the_estimate_may_lack_a_ninth_of_the_answers_and_never_64(
    lengths: list[int], times: int
) -> None:
    answers, watched = Answers(), Answers()
    estimates = [FIRST_TOKENS]
    for tokens in lengths * times:
        answers.add(tokens)
        watched.add(tokens)
        watched.count()
        estimates.append(watched.expected)
        missing = min((len(estimates) - 1) // 9, AT_ONCE_MAX - 1)
        assert answers.expected in estimates[-1 - missing :]


def test_lengths_beyond_all_reason_are_taken_as_the_longest_there_is() -> None:
    answers = Answers()
    answers.add(1 << 60)
    longest = answers.expected
    answers.add(-5)
    assert answers.expected == longest > 1 << 40


def test_old_answers_are_forgotten() -> None:
    answers = Answers()
    for _ in range(ANSWERS_KEPT):
        answers.add(10_000)
    for _ in range(ANSWERS_KEPT):
        answers.add(12)
    assert answers.expected == 12


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 32), st.lists(st.integers(0, 14), min_size=2, max_size=5))
def test_among_the_last_answers_the_percentile_moves_with_what_comes_and_what_goes(
    seed: int, longest: list[int]
) -> None:
    rng = random.Random(seed)
    answers, seen = Answers(), [rng.randint(0, 14) for _ in range(ANSWERS_KEPT)]
    for tokens in seen:
        answers.add(tokens)
    answers.count()
    for most in longest:
        for _ in range(120):
            seen.append(rng.randint(0, most))
            answers.add(seen[-1])
            answers.count()
            assert answers.expected == percentile(seen)


def test_the_largest_batch_is_remembered_for_a_while_and_a_stall_is_not_one() -> None:
    answers = Answers()
    for tokens in (3, 20, 10):
        answers.heard(tokens)
    assert answers.batch == 20
    answers.heard(10_000)
    assert answers.batch == BATCH_MAX
    for _ in range(30):
        answers.heard(10)
        answers.add(100)
    assert 9 <= answers.batch <= 10


def test_one_long_answer_of_a_hundred_changes_nothing() -> None:
    answers = Answers()
    for at in range(400):
        answers.add(100_000 if at % 100 == 99 else 100)
    assert 100 <= answers.expected <= 112


def test_each_client_and_model_has_its_own_and_the_idle_ones_are_forgotten_first() -> None:
    estimates = Estimates(kept_max=2)
    one = estimates.of("a", "", "m")
    one.add(9)
    assert estimates.of("a", "", "m") is one
    two = estimates.of("a", "k", "m")
    assert two is not one
    assert estimates.of("a", "", "m") is one
    estimates.of("b", "", "m")
    assert estimates.of("a", "", "m") is one
    assert estimates.of("a", "k", "m") is not two
