"""Rank fusion: one ranking of several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.search.rank_fusion import K, fused

rankings = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=12), max_size=4)


@pytest.mark.parametrize(
    ("given_", "found"),
    [
        ([], ""),
        (["", ""], ""),
        (["abc"], "abc"),
        (["abc", "cab"], "acb"),
        (["ab", "cd"], "acbd"),
        (["xay", "zaw"], "axzyw"),
    ],
)
def test_what_several_rankings_have_goes_before_what_one_puts_first(
    given_: list[str], found: str
) -> None:
    assert "".join(fused(given_, 10)) == found


@given(rankings, st.integers(1, 5))
def test_it_is_the_sum_of_reciprocal_ranks(lists: list[list[int]], limit: int) -> None:
    found = fused(lists, limit)
    scores = {
        one: sum(1 / (K + 1 + ranking.index(one)) for ranking in lists if one in ranking)
        for ranking in lists
        for one in ranking
    }
    assert len(found) == min(limit, len(scores)) == len(set(found))
    assert [round(scores[one], 12) for one in found] == sorted(
        (round(score, 12) for score in scores.values()), reverse=True
    )[:limit]
