import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.providers.rates.bucket import Bucket
from smg_node.providers.rates.limit_headers import duration_s, header_buckets, reset_s
from smg_node.providers.rates.rate_limits import RateLimits

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("kind", "said", "seconds"),
    [
        ("openai", "6ms", 0.006),
        ("openai", "1.182s", 1.182),
        ("openai", "0s", 0.0),
        ("openai", "1m3.5s", 63.5),
        ("openai", "2h0m0.5s", 7_200.5),
        ("openai", "7m12s", 432.0),
        ("openai", "150µs", 0.00015),
        ("openai_like", "1d2h", 93_600.0),
        ("openai_like", "56", 56.0),
        ("openai_like", "0.5", 0.5),
        ("openai_like", "1700000030", 30.0),
        ("azure", "500", 0.5),
        ("azure_dated", "7", 0.007),
        ("azure", "7ms", 0.007),
        ("anthropic", "2023-11-14T22:13:50Z", 30.0),
        ("anthropic", "2023-11-14T23:13:50+01:00", 30.0),
        ("openai", "soon", None),
        ("openai", "5x", None),
        ("openai", "s", None),
        ("openai", "", None),
        ("anthropic", "2023-99-14T22:13:50Z", None),
    ],
)
def test_a_reset_is_read_as_its_vendor_spells_it(
    kind: str, said: str, seconds: float | None
) -> None:
    found = duration_s(kind, said, now=NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("kind", "headers", "buckets"),
    [
        (
            "openai",
            {
                "x-ratelimit-limit-requests": "500",
                "x-ratelimit-remaining-requests": "499",
                "x-ratelimit-reset-requests": "120ms",
                "x-ratelimit-limit-tokens": "30000",
                "x-ratelimit-remaining-tokens": "29000",
                "x-ratelimit-reset-tokens": "2s",
                "x-ratelimit-limit-input-images": "5",
                "x-ratelimit-remaining-input-images": "5",
                "x-ratelimit-reset-input-images": "0s",
            },
            {
                "requests": Bucket(500, 499, NOW + 0.12, NOW),
                "tokens": Bucket(30_000, 29_000, NOW + 2, NOW),
                "input-images": Bucket(5, 5, NOW, NOW),
            },
        ),
        (
            "azure",
            {
                "x-ratelimit-limit-requests": "120",
                "x-ratelimit-remaining-requests": "119",
                "x-ratelimit-reset-requests": "500",
                "x-ratelimit-renewalperiod-requests": "60",
            },
            {"requests": Bucket(120, 119, NOW + 0.5, NOW)},
        ),
        (
            "anthropic",
            {
                "anthropic-ratelimit-input-tokens-limit": "450000",
                "anthropic-ratelimit-input-tokens-remaining": "449000",
                "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:25Z",
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2023-11-14T22:13:22Z",
            },
            {
                "input-tokens": Bucket(450_000, 449_000, NOW + 5, NOW),
                "requests": Bucket(50, 0, NOW + 2, NOW),
            },
        ),
        (
            "openai_like",
            {
                "x-ratelimit-limit": "10",
                "x-ratelimit-remaining": "4",
                "x-ratelimit-reset": "3",
            },
            {"requests": Bucket(10, 4, NOW + 3, NOW)},
        ),
        (
            "openai_like",
            {
                "ratelimit": '"api";r=499;t=56',
                "ratelimit-policy": '"fixed window";"api";q=500;w=60',
            },
            {"requests": Bucket(500, 499, NOW + 56, NOW, window=True)},
        ),
        (
            "mantle",
            {
                "x-amzn-usage-reservation-quota": "100",
                "x-amzn-usage-reservation-remaining": "40",
            },
            {"tokens": Bucket(100, 40, NOW + 60, NOW)},
        ),
        ("gemini", {"content-type": "application/json"}, {}),
        ("openai", {"x-ratelimit-limit-requests": "many"}, {}),
        (
            "openai",
            {
                "x-ratelimit-limit-requests": "0",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
            },
            {},
        ),
        (
            "openai",
            {
                "x-ratelimit-limit-tokens": "10",
                "x-ratelimit-remaining-tokens": "15",
                "x-ratelimit-reset-tokens": "never",
            },
            {},
        ),
        ("openai_like", {"ratelimit": '"api";r=x;t=56'}, {}),
    ],
)
def test_buckets_are_read_from_headers(
    kind: str, headers: dict[str, str], buckets: dict[str, Bucket]
) -> None:
    assert header_buckets(kind, headers, now=NOW) == buckets


@pytest.mark.parametrize(
    ("need", "after_s", "wait_s"),
    [(40, 0, 0.0), (41, 0, 0.5), (60, 0, 10.0), (100, 0, 30.0), (60, 4, 6.0), (101, 0, math.inf)],
)
def test_a_bucket_fills_evenly_until_it_is_full(need: float, after_s: float, wait_s: float) -> None:
    bucket = Bucket(100, 40, NOW + 30, NOW)
    assert bucket.wait_s(need, NOW + after_s) == pytest.approx(wait_s)


@pytest.mark.parametrize(
    ("need", "after_s", "wait_s"), [(40, 0, 0.0), (41, 0, 30.0), (41, 29, 1.0), (41, 31, 0.0)]
)
def test_a_window_fills_at_its_end(need: float, after_s: float, wait_s: float) -> None:
    bucket = Bucket(100, 40, NOW + 30, NOW, window=True)
    assert bucket.wait_s(need, NOW + after_s) == pytest.approx(wait_s)


def test_what_is_taken_out_keeps_the_speed_of_filling() -> None:
    bucket = Bucket(100, 40, NOW + 30, NOW).lowered(50, NOW)
    assert bucket == Bucket(100, -10, NOW + 55, NOW)
    assert bucket.holds(NOW + 10) == pytest.approx(10)
    assert bucket.holds(NOW + 55) == 100
    window = Bucket(100, 40, NOW + 30, NOW, window=True).lowered(50, NOW + 1)
    assert (window.holds(NOW + 29), window.full_at) == (-10, NOW + 30)
    assert window.lowered(50, NOW + 40).holds(NOW + 41) == 50


def test_a_full_bucket_is_lowered_at_the_pace_of_a_minute() -> None:
    bucket = Bucket(60, 60, NOW, NOW).lowered(30, NOW)
    assert bucket.wait_s(60, NOW) == pytest.approx(30)
    assert bucket.wait_s(31, NOW) == pytest.approx(1)


def headers(remaining: int, reset: str = "60s") -> dict[str, str]:
    return {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": str(remaining),
        "x-ratelimit-reset-requests": reset,
    }


def test_estimates_lower_a_bucket_and_answers_correct_it() -> None:
    limits = RateLimits("openai")
    need = {"requests": 1.0, "tokens": 500.0}
    assert limits.wait_s(need, NOW) == 0.0
    first = limits.begin(need, NOW)
    limits.learn(first, headers(1), NOW)
    assert limits.wait_s(need, NOW) == 0.0

    second = limits.begin(need, NOW)
    assert limits.wait_s(need, NOW) == pytest.approx(60 / 99)
    third = limits.begin(need, NOW)
    # The vendor has counted the second when it answers it, and says nothing of the third.
    limits.learn(second, headers(0, "60s"), NOW + 0.1)
    assert limits.buckets["requests"].remaining == -1
    limits.learn(third, headers(5), NOW + 0.2)
    assert limits.buckets["requests"].remaining == 5
    limits.end(limits.begin(need, NOW + 0.3))
    assert limits.buckets["requests"].remaining == pytest.approx(4.15, abs=0.2)


def test_a_refusal_closes_the_key_for_as_long_as_it_says() -> None:
    limits = RateLimits("gemini")
    limits.close(45.8, NOW)
    limits.close(3.0, NOW)
    assert limits.wait_s({"requests": 1}, NOW) == pytest.approx(45.8)
    assert limits.wait_s({"requests": 1}, NOW + 46) == 0.0


def test_old_news_count_half() -> None:
    limits = RateLimits("openai")
    limits.learn(limits.begin({}, NOW), headers(0, "1000s"), NOW)
    assert limits.wait_s({"requests": 7}, NOW + 59) == pytest.approx(11)
    assert limits.wait_s({"requests": 17}, NOW + 70) == pytest.approx(50)
    assert limits.wait_s({"requests": 101}, NOW + 61) == math.inf


@pytest.mark.parametrize(
    ("told", "seconds"),
    [(headers(0, "30s"), 0.3), (headers(1, "30s"), None), ({}, None)],
)
def test_an_empty_bucket_tells_when_it_holds_something_again(
    told: dict[str, str], seconds: float | None
) -> None:
    found = reset_s("openai", told, now=NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


NAMES = st.sampled_from(
    [
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
        "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
        "ratelimit",
        "ratelimit-policy",
        "x-ratelimit-reset",
        "x-amzn-usage-reservation-quota",
    ]
)
VALUES = (
    st.text("0123456789.msh:TZ-+;rtqw=\"' ", max_size=20)
    | st.text(max_size=8)
    | st.integers(0, 10**18).map(str)
    | st.sampled_from(["9999-12-31T23:59:59Z", "0001-01-01T00:00:00", "1e9", "٣"])
)


@given(
    st.dictionaries(NAMES, VALUES),
    st.sampled_from(["openai", "azure"]),
    st.floats(0, 1e6),
    st.floats(0, 1e5),
)
def test_any_headers_give_buckets_that_can_be_reckoned_with(
    said: dict[str, str], kind: str, need: float, later: float
) -> None:
    for bucket in header_buckets(kind, said, now=NOW).values():
        assert bucket.limit > 0
        assert bucket.remaining <= bucket.limit
        assert bucket.wait_s(need, NOW + later) >= 0
        lowered = bucket.lowered(need, NOW + later)
        assert lowered.holds(NOW + later) <= bucket.holds(NOW + later)
        assert lowered.wait_s(0.0, NOW + later) >= 0
