"""Checkpoint tokens: where a stream stood, sealed for the client that may go on from there.

A token names its interaction, the number of an event, its tenant, when it was made, and whether its
node drained. It is no secret: what it opens, its tenant may read anyway. Ten minutes old, it is refused: the log may be gone.
"""

import base64
import binascii
from typing import Final

import msgspec

from smg_node.core.errors import invalid
from smg_node.history.ports import Vault
from smg_storage.ids import is_id

LIFE_MS: Final = 600_000
_AHEAD_MS: Final = 60_000
"""So far the clock of another node may be ahead."""
_CHARACTERS_MAX: Final = 4_096
_WHERE: Final = "continuation_token"


class _Sealed(msgspec.Struct, frozen=True, array_like=True, tag="checkpoint"):
    tenant: str
    interaction_id: str
    number: int
    made_ms: int
    leaving: bool = False


class Checkpoint(msgspec.Struct, frozen=True):
    """A place in a stream: behind which event of which interaction; -1 is before all of them."""

    interaction_id: str
    number: int
    leaving: bool = False
    """Whether its node drained, and ended the stream with it."""


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Sealed).decode


class CheckpointTokens:
    """Makes and opens tokens with the cluster's encryption."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def issue(self, place: Checkpoint, *, tenant: str, now_ms: int) -> str:
        """Return the token of a place."""
        sealed = _Sealed(tenant, place.interaction_id, place.number, now_ms, place.leaving)
        said = _encode(sealed).decode()
        return base64.urlsafe_b64encode(self._vault.seal(said)).decode().rstrip("=")

    def opened(self, token: str, *, tenant: str, now_ms: int) -> Checkpoint:
        """Return the place; INVALID_REQUEST for a token that is not this tenant's, or too old."""
        found = self._read(token)
        if found is None or found.tenant != tenant or found.number < -1:
            raise invalid("this token was not issued here", _WHERE, "invalid_continuation_token")
        if not is_id(found.interaction_id):
            raise invalid("this token was not issued here", _WHERE, "invalid_continuation_token")
        if not -_AHEAD_MS <= now_ms - found.made_ms <= LIFE_MS:
            why = "this token is too old; the interaction itself may still be asked for"
            raise invalid(why, _WHERE, "stream_expired")
        return Checkpoint(found.interaction_id, found.number, found.leaving)

    def _read(self, token: str) -> _Sealed | None:
        if not token.isascii() or len(token) > _CHARACTERS_MAX:
            return None
        try:
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except binascii.Error:
            return None
        said = self._vault.open_secret(sealed)
        if said is None:
            return None
        try:
            return _decode(said)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None
