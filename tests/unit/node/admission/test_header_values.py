import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.admission.header_values import (
    Family,
    HeaderValues,
    duration,
    limit_headers,
    limit_name,
    window_name,
)
from smg_node.admission.ports import Unit

END_MS = 1_700_000_000_000
UNITS: tuple[Unit, ...] = (
    "requests",
    "tokens",
    "input_tokens",
    "output_tokens",
    "concurrent",
    "cost",
)


def told(
    unit: Unit, remaining: int, limit: int = 100, reset_ms: int = 1_500, name: str = ""
) -> HeaderValues:
    return HeaderValues(name or f"global#{unit}", unit, "exact", limit, remaining, reset_ms, END_MS)


@pytest.mark.parametrize(
    ("length_ms", "text"),
    [
        (0, "0ms"),
        (120, "120ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (1_001, "2s"),
        (60_000, "1m0s"),
        (360_000, "6m0s"),
        (3_600_000, "1h0m0s"),
        (86_399_999, "24h0m0s"),
    ],
)
def test_times_are_spelled_as_clients_of_openai_read_them(length_ms: int, text: str) -> None:
    assert duration(length_ms) == text


@pytest.mark.parametrize(
    ("window_ms", "name"),
    [
        (1_000, "second"),
        (60_000, "minute"),
        (86_400_000, "day"),
        (10_000, "10s"),
        (300_000, "5m"),
        (250, "250ms"),
    ],
)
def test_windows_have_names(window_ms: int, name: str) -> None:
    assert window_name(window_ms) == name


def test_the_tightest_of_each_kind_is_told_and_named_is_the_tightest_of_all() -> None:
    limits = [
        told("requests", 50),
        told("requests", 9, 10, name="tenant=a#requests/second"),
        told("tokens", 900, 1_000),
        told("output_tokens", 20, name="tenant=a#output_tokens/minute"),
        told("concurrent", 30, name="tenant=a#concurrent"),
    ]
    assert limit_headers(limits, "openai") == {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "50",
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-limit-tokens": "100",
        "x-ratelimit-remaining-tokens": "20",
        "x-ratelimit-reset-tokens": "2s",
        "x-smg-limit": "tenant=a#output_tokens/minute",
        "x-smg-limit-state": "exact",
    }


def test_clients_of_anthropic_get_their_own_names_and_the_time_of_day() -> None:
    headers = limit_headers([told("requests", 5), told("input_tokens", 7)], "anthropic")
    assert headers["anthropic-ratelimit-requests-limit"] == "100"
    assert headers["anthropic-ratelimit-requests-remaining"] == "5"
    assert headers["anthropic-ratelimit-requests-reset"] == "2023-11-14T22:13:20Z"
    assert headers["anthropic-ratelimit-tokens-remaining"] == "7"
    assert headers["anthropic-ratelimit-input-tokens-remaining"] == "7"
    assert not any(name.startswith("x-ratelimit") for name in headers)


def test_the_limit_that_refused_is_told_even_if_another_one_is_tighter() -> None:
    refused = told("tokens", 60, name="global#tokens/day")
    headers = limit_headers([told("tokens", 1), refused], "openai", refused=refused)
    assert headers["x-ratelimit-remaining-tokens"] == "60"
    assert headers["x-smg-limit"] == "global#tokens/day"


def test_without_limits_nothing_is_told() -> None:
    assert limit_headers([], "openai") == {}


def test_a_limit_of_nothing_is_the_tightest() -> None:
    assert limit_headers([told("cost", 5), told("concurrent", 0, 0)], "openai") == {
        "x-smg-limit": "global#concurrent",
        "x-smg-limit-state": "exact",
    }


@given(
    st.lists(
        st.builds(
            told,
            st.sampled_from(UNITS),
            st.integers(0, 4),
            st.integers(0, 4),
            name=st.sampled_from("abcdef"),
        ),
        max_size=6,
    ),
    st.sampled_from(["openai", "anthropic"]),
    st.none() | st.builds(told, st.sampled_from(UNITS), st.integers(0, 4), name=st.just("refused")),
)
def test_of_each_kind_the_first_of_the_tightest_is_told(
    limits: list[HeaderValues], family: Family, refused: HeaderValues | None
) -> None:
    groups = {"requests": ["requests"], "tokens": ["tokens", "input_tokens", "output_tokens"]}
    if family == "anthropic":
        groups |= {"input-tokens": ["input_tokens"], "output-tokens": ["output_tokens"]}
    headers = limit_headers(limits, family, refused=refused)
    assert bool(headers) is bool(limits)
    for group, units in groups.items() if limits else ():
        among = [one for one in limits if one.unit in units]
        tightest = min(among, key=fraction, default=None)
        if refused is not None and refused.unit in units:
            tightest = refused
        name = f"remaining-{group}" if family == "openai" else f"{group}-remaining"
        start = "x-ratelimit-" if family == "openai" else "anthropic-ratelimit-"
        assert headers.get(start + name) == (tightest and str(tightest.remaining))
    if limits:
        assert headers["x-smg-limit"] == (refused or min(limits, key=fraction)).name


def fraction(one: HeaderValues) -> float:
    return one.remaining / one.limit if one.limit else 0.0


def test_names_fit_into_headers() -> None:
    name = limit_name("model=\r\nx\u00e9" + "y" * 300, "tokens", 60_000)
    assert name.isascii()
    assert name.isprintable()
    assert len(name) == 200
    assert limit_name("", "concurrent", 0) == "global#concurrent"
