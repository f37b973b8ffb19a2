"""SigV4: signatures of AWS's services over what goes on the wire, version 4. Pure.

    signature = HMAC(key of the day, "AWS4-HMAC-SHA256", time, scope, SHA-256 of the canonical request)

The path is signed percent-encoded once more than it is sent: `%3A` counts as `%253A`. The key of a day is four HMACs,
and is kept.
"""

import hmac
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_REQUEST: Final = "aws4_request"
_KEYS_MAX: Final = 64
"""So many keys of a day are kept; an account has few at a time, and each lives for a day."""
_EMPTY_DIGEST: Final = sha256().hexdigest()
_UNSIGNED: Final = frozenset(
    {
        "authorization",
        "baggage",
        "connection",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-amzn-trace-id",
    }
)
"""Headers that others on the way may change."""


class SigningKeys(Protocol):
    """Who signs. `session_token` is "" for keys that do not expire."""

    @property
    def access_key_id(self) -> str:
        """Which is no secret: it stands in every request."""
        ...

    @property
    def secret_access_key(self) -> str:
        """The key."""
        ...

    @property
    def session_token(self) -> str:
        """The session that the key is of."""
        ...


class RequestToSign(msgspec.Struct, frozen=True):
    """A request as it goes out: `path` and `query` encoded, `query` without its mark, `host` as in its header."""

    method: str
    host: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""


class SigV4Signer:
    """Signs for one service in one region."""

    def __init__(self, service: str, region: str) -> None:
        self._service = service
        self._region = region
        self._keys: dict[tuple[str, str], bytes] = {}

    def headers(self, request: RequestToSign, keys: SigningKeys, *, now_s: float) -> dict[str, str]:
        """Return the headers that make it a signed request, to be added to its own."""
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_s))
        added = {"x-amz-date": at}
        if keys.session_token:
            added["x-amz-security-token"] = keys.session_token
        canonical, signed = _canonical(request, added)
        scope = f"{at[:8]}/{self._region}/{self._service}/{_REQUEST}"
        digest = sha256(canonical.encode()).hexdigest()
        said = f"{_ALGORITHM}\n{at}\n{scope}\n{digest}"
        signature = hmac.digest(self._key(keys, at[:8]), said.encode(), "sha256").hex()
        added["authorization"] = (
            f"{_ALGORITHM} Credential={keys.access_key_id}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )
        return added

    def _key(self, keys: SigningKeys, day: str) -> bytes:
        secret = keys.secret_access_key
        key = self._keys.get((secret, day))
        if key is None:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, _REQUEST):
                key = hmac.digest(key, part.encode(), "sha256")
            if len(self._keys) >= _KEYS_MAX:
                self._keys.clear()
            self._keys[secret, day] = key
        return key


def _canonical(request: RequestToSign, added: Mapping[str, str]) -> tuple[str, str]:
    """Return the canonical request, and the names of its headers."""
    headers = {
        lower: value
        for name, value in request.headers.items()
        if (lower := name.lower()) not in _UNSIGNED
    }
    headers = {"host": request.host, **headers, **added}
    names = sorted(headers)
    signed = ";".join(names)
    lines = "\n".join(f"{name}:{' '.join(headers[name].split())}" for name in names)
    query = "&".join("=".join(pair) for pair in sorted(map(_pair, request.query.split("&"))))
    body = sha256(request.body).hexdigest() if request.body else _EMPTY_DIGEST
    path = quote(_normal(request.path), safe="/~")
    parts = (request.method.upper(), path, query if request.query else "", lines, "", signed, body)
    return "\n".join(parts), signed


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _normal(path: str) -> str:
    """Return a path without empty segments and dots, as it is signed whatever is sent."""
    if "//" not in path and "/." not in path:
        return path or "/"
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            kept = kept[:-1]
        elif segment and segment != ".":
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return f"/{'/'.join(kept)}{end}"
