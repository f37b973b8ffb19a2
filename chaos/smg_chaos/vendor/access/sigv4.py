"""SigV4: AWS request signatures, recomputed from what came over the wire.

    signature = HMAC(HMAC(HMAC(HMAC(HMAC("AWS4" + secret, day), region), service), "aws4_request"), string to sign)

The canonical path encodes the path as sent once more, so `%3A` counts as `%253A`, and has no empty or relative segments.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import quote

_AGE_MAX_S: Final = 300
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/,\s]+)/(?P<day>\d{8})/(?P<region>[^/]+)/"
    r"(?P<service>[^/]+)/aws4_request,\s*SignedHeaders=(?P<signed>[\w;-]+),\s*"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_MUST_BE_SIGNED: Final = ("host", "x-amz-date")


class SignedRequest(NamedTuple):
    """What a signature is about: names of headers are in lower case, `raw_query` is as sent."""

    method: str
    raw_path: str
    raw_query: str
    headers: Mapping[str, str]
    body: bytes


class Claim(NamedTuple):
    """What an Authorization header claims."""

    key_id: str
    day: str
    region: str
    service: str
    signed: tuple[str, ...]
    signature: str

    @property
    def scope(self) -> str:
        """Return the scope of the signature."""
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


def claim_of(authorization: str) -> Claim | None:
    """Return what the header claims, or None if it is no signature."""
    found = _AUTHORIZATION.fullmatch(authorization.strip())
    if found is None:
        return None
    signed = tuple(found["signed"].split(";"))
    return Claim(
        found["id"], found["day"], found["region"], found["service"], signed, found["signature"]
    )


def objection(request: SignedRequest, claim: Claim, secret: str, service: str, now_s: float) -> str:
    """Return why a signature does not hold, in AWS's words, or "" if it does."""
    if claim.service != service:
        return f"Credential should be scoped to correct service: '{service}'. "
    stamp = request.headers.get("x-amz-date", "")
    try:
        signed_s = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return "Date must be in ISO-8601 'basic format'."
    if not stamp.startswith(claim.day):
        return "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP"
    if abs(now_s - signed_s) > _AGE_MAX_S:
        return f"Signature expired: {stamp} is now earlier than the limit of {_AGE_MAX_S} s"
    if missing := [name for name in _MUST_BE_SIGNED if name not in claim.signed]:
        return f"'{missing[0]}' must be a 'SignedHeader' in the AWS Authorization."
    if not hmac.compare_digest(signature_of(request, claim, secret), claim.signature):
        return (
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method."
        )
    return ""


def signature_of(request: SignedRequest, claim: Claim, secret: str) -> str:
    """Return the signature that the request should have."""
    canonical = hashlib.sha256(canonical_request(request, claim.signed).encode()).hexdigest()
    stamp = request.headers.get("x-amz-date", "")
    text = "\n".join((_ALGORITHM, stamp, claim.scope, canonical))
    key = f"AWS4{secret}".encode()
    for part in (claim.day, claim.region, claim.service, "aws4_request", text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def canonical_request(request: SignedRequest, signed: Sequence[str]) -> str:
    """Return the text whose hash is signed."""
    pairs = sorted(pair.partition("=")[::2] for pair in request.raw_query.split("&") if pair)
    heads = "".join(
        f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed
    )
    return "\n".join(
        (
            request.method,
            quote(_normal(request.raw_path), safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            heads,
            ";".join(signed),
            hashlib.sha256(request.body).hexdigest(),
        )
    )


def _normal(raw_path: str) -> str:
    """Return a path without empty and relative segments; a slash at its end stays."""
    kept: list[str] = []
    for segment in raw_path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and raw_path.endswith("/") else ""
    return "/" + "/".join(kept) + end
