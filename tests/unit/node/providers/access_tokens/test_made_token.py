from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.providers.access_tokens.made_token import AwsKeys, MadeToken, bearer, time_of
from smg_node.providers.provider_call import BearerToken

TOKEN = BearerToken("t")
KEYS = AwsKeys("AKIA", "hidden", "hidden too")


@pytest.mark.parametrize(
    ("token", "refresh_at"),
    [
        (MadeToken(TOKEN, 100.0, 3_700.0), 2_980.0),
        (MadeToken(TOKEN, 100.0, None), None),
        (MadeToken(TOKEN, 100.0, 50.0), 100.0),
        (MadeToken(KEYS, 100.0, 3_700.0), 3_400.0),
        (MadeToken(KEYS, 100.0, 1_000.0), 700.0),
        (MadeToken(KEYS, 100.0, 200.0), 150.0),
        (MadeToken(KEYS, 100.0, None), None),
    ],
)
def test_a_token_is_made_anew_before_its_end(token: MadeToken, refresh_at: float | None) -> None:
    assert token.refresh_at == refresh_at


def test_a_token_lets_calls_in_to_its_end() -> None:
    token = MadeToken(TOKEN, 100.0, 200.0)
    assert [token.holds(now) for now in (100.0, 199.9, 200.0)] == [True, True, False]
    assert MadeToken(TOKEN, 100.0, None).holds(1e12)


def test_nothing_of_a_token_is_printed() -> None:
    assert "hidden" not in repr(MadeToken(KEYS, 0.0, None))


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ({"access_token": "t", "expires_in": 3_600}, 4_600.0),
        ({"access_token": "t", "expires_in": "3599"}, 4_599.0),
        ({"access_token": "t", "expires_in": 0.5}, 1_000.5),
    ],
)
def test_a_bearer_token_is_read(said: dict[str, Any], ends: float) -> None:
    assert bearer(said, "x", 1_000.0) == MadeToken(TOKEN, 1_000.0, ends)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "without an access_token"),
        ({"access_token": ""}, "without an access_token"),
        ({"access_token": 3, "expires_in": 5}, "without an access_token"),
        ({"access_token": "t"}, "without the life of its token"),
        ({"access_token": "t", "expires_in": True}, "without the life of its token"),
        ({"access_token": "t", "expires_in": -1}, "without the life of its token"),
        ({"access_token": "t", "expires_in": "soon"}, "without the life of its token"),
    ],
)
def test_an_answer_without_a_token_is_said_to_be_one(said: dict[str, Any], why: str) -> None:
    with pytest.raises(SmgError, match=f"x answered {why}") as caught:
        bearer(said, "x", 0.0)
    assert caught.value.code == "provider_token"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T22:13:20", 1_700_000_000.0),
        ("2023-11-14T23:13:20.5+01:00", 1_700_000_000.5),
        ("soon", None),
        (None, None),
        (3, None),
    ],
)
def test_times_are_read(said: object, seconds: float | None) -> None:
    assert time_of(said) == seconds
