"""What candidates cost is made ready when somebody reads it, and says what it would have said at once."""

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.journey import LEFT_MAX, RATED_MAX, Chosen, Journey, Rated, Ratings
from smg_node.pipeline.observability.journey_log import pack, unpack

costs_s = st.lists(st.floats(0, 100) | st.just(1.0), min_size=1, max_size=2 * LEFT_MAX)


def left(costs: list[float], chosen: int) -> Ratings:
    ratings = Ratings()
    names = [f"w{at}" for at in range(len(costs))]
    ratings.leave(
        names, costs, [cost / 2 for cost in costs], [64.0 * at for at in range(len(costs))], chosen
    )
    return ratings


@given(costs_s, st.integers(0, 2 * LEFT_MAX))
def test_the_best_come_first_and_the_chosen_one_is_among_them(costs: list[float], at: int) -> None:
    chosen = at % len(costs)
    told = list(left(costs, chosen))
    ranked = sorted(range(len(costs)), key=costs.__getitem__)[:RATED_MAX]
    if chosen not in ranked:
        ranked[-1] = chosen
    assert told == [Rated(f"w{one}", costs[one], costs[one] / 2, 64.0 * one) for one in ranked]


def test_of_few_candidates_nothing_is_made_before_somebody_reads_and_of_many_no_list_is_kept() -> (
    None
):
    few, many = left([1.0] * LEFT_MAX, 0), left([1.0] * (LEFT_MAX + 1), 0)
    assert (few._told, few._left is None) == ([], False)
    assert (len(many._told), many._left) == (RATED_MAX, None)
    assert (len(few), few._left) == (RATED_MAX, None)


def test_it_is_read_as_any_sequence() -> None:
    ratings = left([3.0, 1.0, 2.0], 0)
    assert [one.worker for one in ratings] == ["w1", "w2", "w0"]
    assert (ratings[0].worker, ratings[-1].worker, len(ratings[:2])) == ("w1", "w0", 2)
    assert Rated("w1", 1.0, 0.5, 64.0) in ratings
    assert not Ratings()


def test_a_policy_may_tell_of_its_candidates_itself() -> None:
    ratings, told = Ratings(), [Rated(f"w{at}", at / 10, 0.0, 0.0) for at in range(RATED_MAX + 4)]
    ratings.append(told[0])
    ratings.extend(told[1:])
    assert list(ratings) == told[:RATED_MAX]
    # Lists that are left say all there is to say.
    ratings.leave(["a", "b"], [2.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0)
    ratings.append(told[0])
    assert [one.worker for one in ratings] == ["b", "a", "w0"]


def test_a_journey_tells_them_while_it_goes_on_and_packed() -> None:
    journey = Journey("r-1", "n1", "chat", "m", began_ms=1)
    journey.add(Chosen(1, 0, "first", "w1", "cache_aware", 3, rated=left([3.0, 1.0, 2.0], 1)))
    told = unpack(pack(journey))
    (step,) = told.steps
    assert isinstance(step, Chosen)
    assert step.rated == [
        Rated("w1", 1.0, 0.5, 64.0),
        Rated("w2", 2.0, 1.0, 128.0),
        Rated("w0", 3.0, 1.5, 0.0),
    ]
