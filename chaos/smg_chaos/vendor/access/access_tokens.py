"""Access tokens of a stand-in: made from credentials, good until they end, and checked by any of its processes."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from smg_chaos.vendor.answers.seals import Seals

_TOKEN: Final = re.compile(r"vt\.(?P<end>\d{1,15})\.(?P<account>[\w-]+)\.(?P<seal>[\w+/=]+)")
_KIND: Final = "access-token"
_GRANTS: Final = (
    "urn:ietf:params:oauth:grant-type:jwt-bearer",
    "client_credentials",
    "refresh_token",
)
_JWT_PARTS: Final = 3


class AccessTokens:
    """Issues tokens that live `life_s`, and knows its own."""

    def __init__(self, seals: Seals, life_s: float) -> None:
        self._seals = seals
        self._life_s = life_s

    def issue(self, account: str, now_s: float) -> str:
        """Return a new token."""
        end_ms = round((now_s + self._life_s) * 1000)
        name = urlsafe_b64encode(account.encode()).decode().rstrip("=")
        head = f"{end_ms}.{name}"
        return f"vt.{head}.{self._seals.seal(_KIND, '', head, head)}"

    def account_of(self, token: str, now_s: float) -> str | None:
        """Return whom a token was issued to; None if it is none of ours or has ended."""
        found = _TOKEN.fullmatch(token)
        if found is None or int(found["end"]) < now_s * 1000:
            return None
        head = f"{found['end']}.{found['account']}"
        if not self._seals.holds(found["seal"], _KIND, "", head):
            return None
        name = found["account"]
        return urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()

    def answer(self, body: bytes, now_s: float) -> tuple[int, dict[str, Any]]:
        """Return status and body of a call of the token endpoint: Google's and Entra's forms."""
        asked = dict(parse_qsl(body.decode("utf-8", "replace")))
        grant = asked.get("grant_type", "")
        if grant not in _GRANTS:
            return 400, {"error": "unsupported_grant_type", "error_description": f"not {grant!r}"}
        account = _account(grant, asked)
        if account is None:
            return 400, {"error": "invalid_grant", "error_description": "no usable credential"}
        token = self.issue(account, now_s)
        return 200, {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": max(1, round(self._life_s)),
        }


def _account(grant: str, asked: Mapping[str, str]) -> str | None:
    """Return who asks. The assertion's own signature is the issuer's business; here its form counts."""
    if grant == "refresh_token":
        return asked.get("refresh_token") or None
    if grant == "client_credentials":
        proof = asked.get("client_secret") or asked.get("client_assertion")
        return asked.get("client_id") if proof else None
    parts = asked.get("assertion", "").split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        claims = msgspec.json.decode(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) and issuer else None
