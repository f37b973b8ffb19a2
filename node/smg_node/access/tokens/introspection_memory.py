"""Introspection memory: what issuers said of opaque tokens (RFC 7662), for as long as that may count. Pure.

No token is kept, and no digest that somebody could make: only one under a key that this process drew. A good answer counts
until the token ends, at most a minute, so that a token taken back is refused after that; a bad one for ten seconds; that
there was none, for one second, so that an issuer that is away is not asked with every request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any, Final

import msgspec

from smg_node.access.tokens.issuer_documents import DocumentError

GOOD_MS: Final = 60_000
BAD_MS: Final = 10_000
AWAY_MS: Final = 1_000
ANSWERS_MAX: Final = 4_096
ANSWER_BYTES_MAX: Final = 65_536
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Introspected:
    """What is known of a token: its claims if it is good, None if not; `is_away`: there was no answer.

    `until_ms` is when it is to be asked about again, in milliseconds of the wall clock.
    """

    claims: Mapping[str, Any] | None
    until_ms: int
    is_away: bool = False


class IntrospectionMemory:
    """Answers by token, of all issuers; `secret` is drawn anew for each process."""

    def __init__(self, secret: bytes) -> None:
        self._secret: Final = secret
        self._answers: dict[bytes, Introspected] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def place(self, alias: str, token: str) -> bytes:
        """Return under what the answer about a token is kept."""
        said = f"{len(alias)}:{alias}{token}".encode("utf-8", "surrogatepass")
        return blake2b(said, digest_size=_DIGEST_BYTES, key=self._secret).digest()

    def get(self, place: bytes, now_ms: int) -> Introspected | None:
        """Return what is known and still counts."""
        found = self._answers.get(place)
        if found is None or found.until_ms <= now_ms:
            return None
        return found

    def put(self, place: bytes, answer: Introspected) -> None:
        """Keep an answer; of too many the oldest goes."""
        self._answers.pop(place, None)
        while len(self._answers) >= ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        self._answers[place] = answer

    def clear(self) -> None:
        """Forget all: an issuer is another than before."""
        self._answers.clear()


def read_introspection(body: bytes, now_ms: int) -> Introspected:
    """Return what an issuer says of a token; DocumentError for what is no answer to that."""
    try:
        said = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DocumentError("the answer about a token is no JSON object") from None
    active = said.get("active")
    if active is False:
        return Introspected(None, now_ms + BAD_MS)
    if active is not True:
        raise DocumentError("the answer about a token does not say whether it is active")
    until_ms = now_ms + GOOD_MS
    expires_s = said.get("exp")
    if isinstance(expires_s, int | float) and not isinstance(expires_s, bool):
        if not isfinite(expires_s):
            raise DocumentError("exp of the answer about a token is no time")
        until_ms = min(until_ms, round(min(expires_s, 1e12) * 1000))
        if until_ms <= now_ms:
            return Introspected(None, now_ms + BAD_MS)
    return Introspected(said, until_ms)


def away(now_ms: int) -> Introspected:
    """Return that there was no answer."""
    return Introspected(None, now_ms + AWAY_MS, is_away=True)
