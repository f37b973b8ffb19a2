"""Made token: what a maker gives, a Bearer token or keys of AWS, and when it is to be made anew. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.providers.provider_call import BearerToken

SHARE_OF_LIFE: Final = 0.8
SESSION_SPARE_S: Final = 300.0
"""AWS gives a new session at any time, so one is used until five minutes before its end."""
_LIFE_MAX_S: Final = 86_400.0 * 366
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class AwsKeys(msgspec.Struct, frozen=True):
    """Keys that sign requests; a session's have a token beside them."""

    access_key_id: str
    secret_access_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return "AwsKeys(…)"


class MadeToken(msgspec.Struct, frozen=True):
    """What lets calls in from `made` on. `ends` is None for what holds until somebody replaces it.

    Times are in seconds since the epoch.
    """

    credential: BearerToken | AwsKeys
    made: float
    ends: float | None

    @property
    def refresh_at(self) -> float | None:
        """When the next one is to be made."""
        if self.ends is None:
            return None
        life_s = max(self.ends - self.made, 0.0)
        if isinstance(self.credential, AwsKeys):
            return max(self.ends - SESSION_SPARE_S, self.made + life_s / 2)
        return self.made + SHARE_OF_LIFE * life_s

    def holds(self, now: float) -> bool:
        """Whether it lets calls in."""
        return self.ends is None or now < self.ends


def token_error(why: str) -> SmgError:
    """Return the error for a token that cannot be had; `why` holds nothing secret."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"no access token: {why}", code="provider_token")


def bearer(said: Mapping[str, Any], where: str, now: float) -> MadeToken:
    """Return the token in the answer of a token endpoint; UPSTREAM_FAILED `provider_token` if it holds none.

    Some endpoints spell `expires_in` as a text.
    """
    value, life = said.get("access_token"), said.get("expires_in")
    if isinstance(life, str) and life.isascii() and life.isdigit():
        life = int(life[:12])
    if not isinstance(value, str) or not value:
        raise token_error(f"{where} answered without an access_token")
    if not isinstance(life, int | float) or isinstance(life, bool) or life <= 0:
        raise token_error(f"{where} answered without the life of its token (expires_in)")
    # Google pads its tokens with dots, which are part of them.
    return MadeToken(BearerToken(value), now, now + min(float(life), _LIFE_MAX_S))


def time_of(said: object) -> float | None:
    """Return a time of RFC 3339 in seconds since the epoch; None for what is none."""
    try:
        date = datetime.fromisoformat(said) if isinstance(said, str) else None
        if date is None:
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return (date - _EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return None
