"""Headers made of what does not change: the same as those that are made anew each time, whatever happens to the shares."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.headers import LimitHeaders
from smg_node.admission.matching import Measure
from smg_node.admission.ports import State, Unit
from smg_node.admission.tally import Tally
from smg_node.admission.told import Family, limit_headers
from support.fake_rights import FakeMatch, FakeShare

UNITS: list[Unit] = ["requests", "tokens", "input_tokens", "output_tokens", "concurrent", "cost"]
STATES: list[State] = ["exact", "alone", "standing", "borrowed"]
NOW_MS = 1_700_000_000_123


class Slow(Measure):
    """Looks at everything, every time."""

    def remains(self, *, most: int | None = None) -> int:
        share = self.share
        heard = share.pool >= 0 and share.state in ("exact", "alone")
        remaining = share.left + (share.pool if heard else 0)
        if share.debt > 0:
            remaining = 0
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
    {
        "left": st.integers(-20, 120),
        "pool": st.integers(-1, 60),
        "state": st.sampled_from(STATES),
        "amount": st.sampled_from([0, 50, 100, 100, 100]),
        "debt": st.sampled_from([0, 0, 0, 7]),
        "window": st.sampled_from([0, 1, 1, 1, 2]),
        "ends_ms": st.integers(NOW_MS - 5_000, NOW_MS + 90_000_000),
    }
)


@settings(max_examples=300)
@given(
    kinds=st.lists(matches, max_size=5),
    steps=st.lists(
        st.tuples(st.integers(0, 4), moments, st.integers(0, 3_000), st.none() | st.integers(0, 9)),
        max_size=12,
    ),
    family=st.sampled_from(["openai", "anthropic"]),
)
def test_they_are_what_is_told_of_the_same_limits(
    kinds: list[FakeMatch], steps: list[tuple[int, dict[str, Any], int, int | None]], family: Family
) -> None:
    shares = [FakeShare(kind.key, 100, 100, kind.window_ms) for kind in kinds]
    quick = [Measure(kind, share, Tally()) for kind, share in zip(kinds, shares, strict=True)]
    slow = [Slow(kind, share, Tally()) for kind, share in zip(kinds, shares, strict=True)]
    headers = LimitHeaders(quick, family)
    now_ms = NOW_MS
    for at, change, later_ms, most in steps:
        now_ms += later_ms
        if at < len(shares):
            for name, value in change.items():
                setattr(shares[at], name, value)
            if most is not None:
                assert quick[at].told(now_ms, most=most) == slow[at].told(now_ms, most=most)
        assert headers.as_of(now_ms) == limit_headers([one.told(now_ms) for one in slow], family)


def test_where_a_share_sleeps_nobody_knows() -> None:
    kind = FakeMatch("tenant=a#requests", "tenant=a", "requests")
    share = FakeShare(kind.key, 0, 100, window=-1)
    assert LimitHeaders([Measure(kind, share, Tally())], "openai").as_of(NOW_MS) is None
