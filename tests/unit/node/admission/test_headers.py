"""Headers made of what does not change: the same as those that are made anew each time, whatever happens to the shares."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.header_values import Family, limit_headers
from smg_node.admission.headers import LimitHeaders
from smg_node.admission.limit_counters import Tally
from smg_node.admission.matched_limit import MatchedLimit
from smg_node.admission.ports import State, Unit
from support.rights.fake_rights import FakeMatch, FakeShare
from support.tools.example_counts import example_count

UNITS: list[Unit] = ["requests", "tokens", "input_tokens", "output_tokens", "concurrent", "cost"]
STATES: list[State] = ["exact", "alone", "standing", "borrowed"]
FAMILIES: list[Family] = ["openai", "anthropic"]
NOW_MS = 1_700_000_000_123


class Slow(MatchedLimit):
    """Looks at everything, every time."""

    def remains(self, *, most: int | None = None) -> int:
        share = self.share
        heard = share.pool >= 0 and share.state in ("exact", "alone")
        remaining = share.left + (share.pool if heard else 0)
        if share.debt > 0:
            remaining = remaining - share.debt if heard and share.pool > 0 else 0
        if most is not None:
            remaining = min(remaining, most)
        remaining = max(0, min(remaining, share.amount))
        if self.window_ms:
            remaining = self._fallen(remaining, heard=heard, refused=most is not None)
        return remaining


matches = st.builds(
    lambda unit, scope, window_ms: FakeMatch(
        f"{scope}#{unit}", scope, unit, 0 if unit == "concurrent" else window_ms
    ),
    st.sampled_from(UNITS),
    st.sampled_from(["tenant=a", "model=m", ""]),
    st.sampled_from([1_000, 10_000, 60_000, 86_400_000]),
)
moments = st.fixed_dictionaries(
    {"left": st.integers(-20, 120) | st.integers(30, 90)},
    optional={
        "pool": st.integers(-1, 60),
        "state": st.sampled_from(STATES),
        "amount": st.sampled_from([0, 50, 100, 100, 100]),
        "debt": st.sampled_from([0, 0, 0, 7]),
        "window": st.sampled_from([-1, 0, 1, 1, 1, 2]),
        "ends_ms": st.integers(NOW_MS - 5_000, NOW_MS + 90_000_000),
    },
)
steps = st.tuples(
    st.integers(0, 4),
    moments,
    st.integers(-2_000, 3_000) | st.integers(0, 40),
    st.none() | st.none() | st.none() | st.integers(0, 9),
    st.sampled_from(FAMILIES),
    # Then requests come and go, and nothing else is new.
    st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 4), st.integers(0, 60)), max_size=9),
)


@settings(max_examples=example_count(500), deadline=None)
@given(
    kinds=st.lists(matches, max_size=5),
    amounts=st.tuples(*5 * [st.sampled_from([8, 100, 100, 1_000_000_000_000, 1 << 53])]),
    steps=st.lists(steps, max_size=12),
)
def test_they_are_what_is_told_of_the_same_limits(
    kinds: list[FakeMatch],
    amounts: tuple[int, ...],
    steps: list[tuple[int, dict[str, Any], int, int | None, Family, list[tuple[int, int, int]]]],
) -> None:
    shares = [
        FakeShare(kind.key, amount - 1, amount, kind.window_ms, ends_ms=NOW_MS + 50_000)
        for kind, amount in zip(kinds, amounts, strict=False)
    ]
    quick = [MatchedLimit(kind, share, Tally()) for kind, share in zip(kinds, shares, strict=True)]
    slow = [Slow(kind, share, Tally()) for kind, share in zip(kinds, shares, strict=True)]
    headers = {family: LimitHeaders(quick, family) for family in FAMILIES}
    now_ms = NOW_MS
    for at, change, later_ms, most, family, requests in steps:
        now_ms += later_ms
        if at < len(shares):
            for name, value in change.items():
                setattr(shares[at], name, value)
            if most is not None:
                assert quick[at].told(now_ms, most=most) == slow[at].told(now_ms, most=most)
        for which, come, soon_ms in [(9, 0, 0), *requests]:
            if which < len(shares):
                shares[which].left += come
            now_ms += soon_ms
            _same(headers[family], quick, slow, now_ms, family)


def _same(
    headers: LimitHeaders,
    quick: list[MatchedLimit],
    slow: list[Slow],
    now_ms: int,
    family: Family,
) -> None:
    told = headers.as_of(now_ms)
    if any(one.share.window < 0 for one in quick):
        assert told is None
        assert [one.told(now_ms) for one in quick] == [one.told(now_ms) for one in slow]
    else:
        assert told == limit_headers([one.told(now_ms) for one in slow], family)


def test_from_one_request_to_the_next_only_what_remains_is_spelled() -> None:
    """That is what they are kept for; nothing but the time it takes says whether they are."""
    kinds = [FakeMatch("a#requests", "a", "requests"), FakeMatch("a#tokens", "a", "tokens")]
    places = FakeMatch("a#concurrent", "a", "concurrent", 0)
    shares = [FakeShare(kind.key, 900, 1_000, ends_ms=NOW_MS + 9_500) for kind in kinds]
    shares.append(FakeShare(places.key, 500, 1_000, 0))
    looked: list[str] = []

    class Looked(MatchedLimit):
        def remains(self, *, most: int | None = None) -> int:
            looked.append(self.name)
            return super().remains(most=most)

    measures = [
        Looked(kind, share, Tally()) for kind, share in zip([*kinds, places], shares, strict=True)
    ]
    headers = LimitHeaders(measures, "openai")
    for at in range(50):
        shares[0].left, shares[1].left, shares[2].left = 900 - at, 700 - 3 * at, 500 - at % 3
        shares[1].pool = at % 7
        told = headers.as_of(NOW_MS + 10 * at)
        assert told is not None
        assert told["x-ratelimit-remaining-requests"] == str(900 - at)
        assert told["x-smg-limit"] == "a#concurrent"
    assert len(looked) == len(measures)
    for later_ms, resets in (
        (500, "9s"),
        (1_499, "9s"),
        (1_500, "8s"),
        (8_501, "999ms"),
        (9_500, "0ms"),
    ):
        told = headers.as_of(NOW_MS + later_ms)
        assert told is not None
        assert told["x-ratelimit-reset-tokens"] == resets
    assert len(looked) == len(measures)


def test_where_a_share_sleeps_nobody_knows() -> None:
    kind = FakeMatch("tenant=a#requests", "tenant=a", "requests")
    share = FakeShare(kind.key, 0, 100, window=-1)
    assert LimitHeaders([MatchedLimit(kind, share, Tally())], "openai").as_of(NOW_MS) is None
