"""Access tokens: issued for credentials, known until their end, and by every process with the key."""

from base64 import urlsafe_b64encode
from urllib.parse import urlencode

import pytest

from smg_chaos.vendor.access.access_tokens import AccessTokens
from smg_chaos.vendor.answers.seals import Seals

TOKENS = AccessTokens(Seals(b"key"), 5.0)
CLAIMS = urlsafe_b64encode(b'{"iss":"robot@project"}').decode().rstrip("=")


def test_a_token_is_known_until_its_end() -> None:
    token = TOKENS.issue("robot@project", 100.0)
    other = AccessTokens(Seals(b"key"), 60.0)
    assert other.account_of(token, 105.0) == "robot@project"
    assert other.account_of(token, 105.001) is None
    assert AccessTokens(Seals(b"another"), 5.0).account_of(token, 100.0) is None
    assert other.account_of(token.replace("vt.1", "vt.9"), 100.0) is None


@pytest.mark.parametrize(
    "token", ["", "vt.", "vt.1.a.b", "sk-vendor", "vt.999999999999999.YQ.AAAA"]
)
def test_what_it_did_not_issue_is_nobody(token: str) -> None:
    assert TOKENS.account_of(token, 0.0) is None


@pytest.mark.parametrize(
    ("fields", "account"),
    [
        (
            {
                "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
                "assertion": f"e30.{CLAIMS}.c2ln",
            },
            "robot@project",
        ),
        (
            {"grant_type": "client_credentials", "client_id": "app", "client_secret": "s"},
            "app",
        ),
        (
            {"grant_type": "client_credentials", "client_id": "app", "client_assertion": "j"},
            "app",
        ),
        ({"grant_type": "refresh_token", "refresh_token": "r1"}, "r1"),
    ],
)
def test_the_endpoint_takes_the_grants_of_google_and_entra(
    fields: dict[str, str], account: str
) -> None:
    status, answer = TOKENS.answer(urlencode(fields).encode(), 100.0)
    assert (status, answer["token_type"], answer["expires_in"]) == (200, "Bearer", 5)
    assert TOKENS.account_of(answer["access_token"], 101.0) == account


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "unsupported_grant_type"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials", "client_id": "app"}, "invalid_grant"),
        (
            {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "a.%.c"},
            "invalid_grant",
        ),
        (
            {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "a"},
            "invalid_grant",
        ),
    ],
)
def test_anything_else_is_refused(fields: dict[str, str], error: str) -> None:
    status, answer = TOKENS.answer(urlencode(fields).encode(), 100.0)
    assert (status, answer["error"]) == (400, error)
