import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.providers.failures.retry_after import WAIT_MAX_S, retry_after_s, should_retry

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("status", "headers", "body_s", "reset_s", "wait_s"),
    [
        (429, {"retry-after": "7"}, None, None, 7.0),
        (429, {"retry-after": " 0.25 "}, None, None, 0.25),
        (503, {"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, None, None, 30.0),
        (529, {"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, None, None, 0.0),
        (429, {"retry-after": "Tue, 14 Nov 2023 22:13:50 -0000"}, None, None, 30.0),
        (429, {"retry-after-ms": "1500.5", "retry-after": "9"}, None, None, 1.5005),
        (429, {"retry-after-ms": "soon", "retry-after": "9"}, None, None, 9.0),
        (429, {"retry-after": "9"}, 45.8, 3.0, 9.0),
        (429, {}, 45.8, 3.0, 45.8),
        (429, {}, None, 3.0, 3.0),
        (429, {}, None, None, None),
        (429, {}, None, float("inf"), None),
        (429, {"retry-after": "soon"}, None, None, None),
        (429, {"retry-after": "-3"}, None, None, None),
        (429, {"retry-after": "99999999999"}, None, None, WAIT_MAX_S),
        (200, {"retry-after": "9"}, None, None, None),
        (500, {"retry-after": "9"}, 4.0, 3.0, None),
        (400, {"retry-after-ms": "9"}, None, None, None),
    ],
)
def test_the_wait_is_found_wherever_it_is_said(
    status: int,
    headers: dict[str, str],
    body_s: float | None,
    reset_s: float | None,
    wait_s: float | None,
) -> None:
    found = retry_after_s(status, headers, now=NOW, body_s=body_s, reset_s=reset_s)
    assert found == (None if wait_s is None else pytest.approx(wait_s))


@pytest.mark.parametrize(
    ("said", "retry"), [("true", True), (" False ", False), ("maybe", None), ("", None)]
)
def test_a_vendor_may_say_whether_to_try_again(said: str, retry: bool | None) -> None:
    assert should_retry({"x-should-retry": said}) is retry


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_header_gives_a_wait_within_bounds_or_none(ms: str, after: str) -> None:
    found = retry_after_s(429, {"retry-after-ms": ms, "retry-after": after}, now=NOW)
    assert found is None or 0.0 <= found <= WAIT_MAX_S
