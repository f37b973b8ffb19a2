import math

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.estimate import ANSWERS_KEPT, FIRST_TOKENS, Answers, Estimates

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
        exact = percentile(seen)
        assert exact <= answers.expected <= exact * 1.125
    assert len(answers) == min(len(seen), ANSWERS_KEPT)


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
