"""Client tokens: access tokens of client credentials (RFC 6749, section 4.4), kept for most of their life.

One request makes a token, whoever waits for it. A token is made anew at 80 % of its life; where that fails, the old one
is used as long as it lives. Nothing that an issuer says is repeated but its error's code.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode
from weakref import WeakValueDictionary

import msgspec

from smg_node.mcp.failures import Failure, FailureKind, lost, timed_out
from smg_node.mcp.server_spec import TokenIssuer

LIFE_S: Final = 300.0
"""Of a token whose issuer does not say how long it is good."""
RENEWED_AT: Final = 0.8
FETCH_S: Final = 10.0
AGAIN_S: Final = 5.0
"""An issuer that failed is asked again no sooner."""
TOKENS_MAX: Final = 1_000
_ERROR: Final = re.compile(r"[a-z_]{1,40}")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8000}")

Fetch: TypeAlias = Callable[[str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]
"""Posts headers and a body to a URL; OSError or TimeoutError where there is no answer."""


class _Answer(msgspec.Struct):
    access_token: str = ""
    token_type: str = "bearer"
    expires_in: Any = None
    error: Any = None


class _Made(NamedTuple):
    token: str
    renew_s: float
    dead_s: float


class ClientTokens:
    """Tokens of one process, by issuer and secret."""

    def __init__(self, fetch: Fetch, now_s: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now_s = now_s
        self._made: dict[tuple[TokenIssuer, str], _Made] = {}
        self._failed: dict[tuple[TokenIssuer, str], tuple[float, Failure]] = {}
        self._locks: WeakValueDictionary[tuple[TokenIssuer, str], asyncio.Lock] = (
            WeakValueDictionary()
        )
        """Those that somebody holds or waits for."""

    async def token(self, issuer: TokenIssuer, secret: str) -> str | Failure:
        """Return a token that is good by now, or why there is none."""
        key = (issuer, secret)
        made = self._made.get(key)
        if made is not None and self._now_s() < made.renew_s:
            return made.token
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            made = self._made.get(key)
            now_s = self._now_s()
            if made is not None and now_s < made.renew_s:
                return made.token
            failed = self._failed.get(key)
            fresh = failed[1] if failed is not None and now_s < failed[0] else await self._make(key)
            if isinstance(fresh, Failure):
                still_good = made is not None and self._now_s() < made.dead_s
                return made.token if made is not None and still_good else fresh
            return fresh.token

    def forget(self, issuer: TokenIssuer, secret: str, token: str) -> None:
        """Use a token no more: its server does not let it in."""
        made = self._made.get((issuer, secret))
        if made is not None and made.token == token:
            del self._made[issuer, secret]

    async def _make(self, key: tuple[TokenIssuer, str]) -> _Made | Failure:
        issuer, secret = key
        asked_s = self._now_s()
        try:
            async with asyncio.timeout(FETCH_S):
                status, body = await self._fetch(issuer.url, *request_of(issuer, secret))
            read = read_answer(status, body)
        except TimeoutError:
            read = timed_out(
                f"the issuer of its tokens did not answer in {FETCH_S:g} s", sent=False
            )
        except OSError:
            read = lost("the issuer of its tokens cannot be reached", sent=False)
        if isinstance(read, Failure):
            self._failed.pop(key, None)
            self._failed[key] = (self._now_s() + AGAIN_S, read)
            while len(self._failed) > TOKENS_MAX:
                del self._failed[next(iter(self._failed))]
            return read
        token, life_s = read
        made = _Made(token, asked_s + life_s * RENEWED_AT, asked_s + life_s)
        self._failed.pop(key, None)
        self._keep(key, made)
        return made

    def _keep(self, key: tuple[TokenIssuer, str], made: _Made) -> None:
        self._made.pop(key, None)
        while len(self._made) >= TOKENS_MAX:
            del self._made[next(iter(self._made))]
        self._made[key] = made


def request_of(issuer: TokenIssuer, secret: str) -> tuple[Mapping[str, str], bytes]:
    """Return headers and body of the request for a token."""
    form = {"grant_type": "client_credentials", "scope": issuer.scope, "resource": issuer.resource}
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    if issuer.in_body:
        form |= {"client_id": issuer.client_id, "client_secret": secret}
    else:
        pair = f"{quote(issuer.client_id, safe='')}:{quote(secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return headers, urlencode({name: value for name, value in form.items() if value}).encode()


def read_answer(status: int, body: bytes) -> tuple[str, float] | Failure:
    """Return a token and the seconds of its life, or why an issuer gave none; counted as a token that let nobody in."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = _Answer()
    if status != 200 or not _TOKEN.fullmatch(answer.access_token):
        named = (
            answer.error if isinstance(answer.error, str) and _ERROR.fullmatch(answer.error) else ""
        )
        why = f"the issuer of its tokens answered {status}" + (f" ({named})" if named else "")
        return Failure(FailureKind.HTTP, 401, why, sent=False, status=401)
    if answer.token_type.lower() != "bearer":
        why = "the issuer of its tokens makes none for the header authorization"
        return Failure(FailureKind.HTTP, 401, why, sent=False, status=401)
    return answer.access_token, _life_s(answer.expires_in)


def _life_s(expires_in: Any) -> float:
    try:
        life_s = float(expires_in)
    except (TypeError, ValueError, OverflowError):
        return LIFE_S
    return min(life_s, 86_400.0) if life_s > 0 else LIFE_S
