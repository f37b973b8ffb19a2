"""Buckets of rates, and the headers that tell them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.errors.vendor_error import Reason, VendorError
from smg_chaos.vendor.hostings.hosting import LimitStyle
from smg_chaos.vendor.limits.limit_headers import go_duration, headers_of
from smg_chaos.vendor.limits.rate_buckets import Bucket, RateBuckets


def test_a_bucket_refills_all_the_time() -> None:
    bucket = Bucket(60, 0.0)
    bucket.take(60, 0.0)
    assert (bucket.remaining(0.0), bucket.wait_s(1, 0.0), bucket.reset_s(0.0)) == (0, 1.0, 60.0)
    assert (bucket.remaining(1.5), bucket.wait_s(2, 1.5)) == (1, 0.5)
    assert bucket.remaining(1_000.0) == 60


def test_more_than_it_ever_holds_waits_until_it_is_full() -> None:
    bucket = Bucket(60, 0.0)
    assert bucket.wait_s(600, 0.0) == 0.0
    bucket.take(30, 0.0)
    assert bucket.wait_s(600, 0.0) == 30.0


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 30)), max_size=30))
def test_no_more_than_the_limit_goes_out_beyond_what_flows_in(
    steps: list[tuple[int, float]],
) -> None:
    bucket, now_s, taken = Bucket(100, 0.0), 0.0, 0
    for amount, pause_s in steps:
        now_s += pause_s
        if bucket.wait_s(amount, now_s) == 0.0:
            bucket.take(amount, now_s)
            taken += amount
    assert taken <= 100 + now_s * 100 / 60 + 1e-6


def test_a_request_without_room_counts_nothing() -> None:
    rates = RateBuckets(10, 100)
    rates.admit("k", 90, 0.0)
    with pytest.raises(VendorError) as raised:
        rates.admit("k", 20, 0.0)
    error = raised.value
    assert (error.reason, error.path, error.gate) == (Reason.RATE, "tokens", True)
    assert error.retry_after_s == pytest.approx(6.0)
    buckets = rates.of("k", 0.0)
    assert buckets.requests is not None
    assert buckets.requests.remaining(0.0) == 9
    rates.admit("another", 90, 0.0)


def test_no_limit_is_no_bucket() -> None:
    buckets = RateBuckets(0, 0).admit("k", 10**9, 0.0)
    assert (buckets.requests, buckets.tokens) == (None, None)
    assert headers_of("openai", buckets, 0.0, 0.0) == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0055, "6ms"),
        (0.9999, "1s"),
        (1, "1s"),
        (1.182, "1.182s"),
        (60, "1m0s"),
        (179.56, "2m59.56s"),
        (3_661.5, "1h1m1.5s"),
    ],
)
def test_a_duration_is_printed_as_go_does(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


STYLES: list[tuple[LimitStyle, dict[str, str]]] = [
    (
        "openai",
        {
            "x-ratelimit-limit-requests": "120",
            "x-ratelimit-remaining-requests": "119",
            "x-ratelimit-reset-requests": "500ms",
            "x-ratelimit-limit-tokens": "120000",
            "x-ratelimit-remaining-tokens": "119986",
            "x-ratelimit-reset-tokens": "7ms",
        },
    ),
    (
        "azure",
        {
            "x-ratelimit-limit-requests": "120",
            "x-ratelimit-remaining-requests": "119",
            "x-ratelimit-reset-requests": "500",
            "x-ratelimit-renewalperiod-requests": "60",
            "x-ratelimit-limit-tokens": "120000",
            "x-ratelimit-remaining-tokens": "119986",
            "x-ratelimit-reset-tokens": "7",
            "x-ratelimit-renewalperiod-tokens": "60",
        },
    ),
    (
        "anthropic",
        {
            "anthropic-ratelimit-requests-limit": "120",
            "anthropic-ratelimit-requests-remaining": "119",
            "anthropic-ratelimit-requests-reset": "2026-09-21T14:13:21Z",
            **{
                f"anthropic-ratelimit-{what}-{field}": value
                for what in ("tokens", "input-tokens", "output-tokens")
                for field, value in (
                    ("limit", "120000"),
                    ("remaining", "120000"),
                    ("reset", "2026-09-21T14:13:21Z"),
                )
            },
        },
    ),
    (
        "together",
        {
            "x-ratelimit-limit": "120",
            "x-ratelimit-remaining": "119",
            "x-ratelimit-reset": "1",
        },
    ),
    (
        "huggingface",
        {
            "ratelimit": '"api";r=119;t=1',
            "ratelimit-policy": '"fixed window";"api";q=120;w=60',
        },
    ),
    ("none", {}),
]


@pytest.mark.parametrize(("style", "headers"), STYLES)
def test_each_vendor_tells_its_limits_in_its_units(
    style: LimitStyle, headers: dict[str, str]
) -> None:
    buckets = RateBuckets(120, 120_000).admit("k", 14, 0.0)
    assert headers_of(style, buckets, 0.0, 1_790_000_000.0) == headers
