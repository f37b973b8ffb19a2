"""Token head: header, unverified claims and signature of a signed token (RFC 7515), taken apart within limits.

Nothing here is believed yet: `issuer` only says whose keys to try. A header's own hints where keys are (`jku`, `x5u`,
`jwk`) are never followed, so they are not even read. Pure.
"""

import re
from binascii import Error, a2b_base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.access.identity import AccessError
from smg_node.access.tokens.token_errors import malformed
from smg_node.config.token_forms import NO_TYPE, TOKEN_TYPES

JSON_MAX_BYTES: Final = 12_288
_ENCODED_MAX: Final = JSON_MAX_BYTES // 3 * 4
_SIGNATURE_MAX: Final = 1_368
"""Characters of 1,024 bytes: the longest signature, by RSA of 8,192 bits."""
_KEY_ID_MAX: Final = 512
_TOKEN: Final = re.compile(r"ey[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)
_STANDARD: Final = str.maketrans("-_", "+/")
_LAST: Final = {2: frozenset("AQgw"), 3: frozenset("AEIMQUYcgkosw048")}
"""Characters that may end a text of so many beyond groups of four: bits beyond the last byte are zero."""
_APPLICATION: Final = "application/"
_TYPES: Final = {name.lower(): name for name in TOKEN_TYPES if name != NO_TYPE}
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class TokenHead:
    """What a token says of itself. Not one word of it is proven before a key of its issuer fits the signature."""

    algorithm: str
    kid: str
    """Which key signed it; "" for none named."""
    type: str | None
    """As `TOKEN_TYPES` spells it, another one as it came; None for a token that says none."""
    issuer: str
    claims: Mapping[str, Any]
    signed: bytes
    """What the signature is over."""
    signature: bytes


def looks_signed(credential: str) -> bool:
    """Whether a credential has the form of a signed token: three parts of base64url, the first of them a JSON object."""
    return credential.startswith("ey") and _TOKEN.fullmatch(credential) is not None


def read_token(token: str) -> TokenHead:
    """Return the parts of a token; UNAUTHENTICATED `invalid_token` for one that is none, whatever it is."""
    if not looks_signed(token):
        raise malformed("the token is not three parts of base64url")
    header_text, claims_text, signature_text = token.split(".")
    header = _object(header_text, "header")
    for name in ("zip", "crit"):
        if name in header:
            raise malformed(f"a token with {name} in its header is not read here")
    claims = _object(claims_text, "claims")
    if len(signature_text) > _SIGNATURE_MAX:
        raise malformed("the token's signature is too long")
    return TokenHead(
        algorithm=_text(header, "alg"),
        kid=_text(header, "kid") if "kid" in header else "",
        type=_type(_text(header, "typ")) if "typ" in header else None,
        issuer=_text(claims, "iss"),
        claims=claims,
        signed=token[: len(header_text) + 1 + len(claims_text)].encode("ascii"),
        signature=_bytes(signature_text, "signature"),
    )


def unverified_issuer(token: str) -> str | None:
    """Return whom a token says it is from; None for what is no token."""
    try:
        return read_token(token).issuer
    except AccessError:
        return None


def _object(text: str, part: str) -> dict[str, Any]:
    if len(text) > _ENCODED_MAX:
        raise malformed(f"the token's {part} is longer than {JSON_MAX_BYTES} bytes")
    try:
        return _decode(_bytes(text, part))
    except (ValueError, RecursionError):
        raise malformed(f"the token's {part} is not a JSON object") from None


def _bytes(text: str, part: str) -> bytes:
    """Return what base64url of one spelling says: no padding, no other characters, no bits left over."""
    over = len(text) % 4
    if over == 1 or (over and text[-1] not in _LAST[over]):
        raise malformed(f"the token's {part} is not whole base64url")
    try:
        return a2b_base64(text.translate(_STANDARD) + "=" * (-over % 4), strict_mode=True)
    except Error:
        raise malformed(f"the token's {part} is not base64url") from None


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value or len(value) > _KEY_ID_MAX:
        raise malformed(f"the token's {name} is not a text of 1 to {_KEY_ID_MAX} characters")
    return value


def _type(said: str) -> str:
    return _TYPES.get(said.lower().removeprefix(_APPLICATION), said)
