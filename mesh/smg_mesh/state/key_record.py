"""Key record: one API key as all nodes know it: its owner, its rights,
its end, a digest of its secret.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.state.unknown_versions import read_map

Role: TypeAlias = Literal["user", "operator", "admin"]
"""What a key may do; each may what the ones before it may."""
ROLES: Final[tuple[Role, ...]] = ("user", "operator", "admin")
TENANT_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
"""Stands in scopes, labels and headers, so nothing that means something there."""
NAME_CHARACTERS_MAX: Final = 64
DIGEST_BYTES: Final = 32
FOREIGN: Final = "foreign"
"""Kind of a key that another gateway made: the digest is of all of it, and its id follows from that."""
_TIME_MAX_MS: Final = (1 << 53) - 1

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS_MAX)]
_Kind: TypeAlias = Annotated[str, msgspec.Meta(max_length=16)]
_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MAX_MS)]


class KeyRecord(msgspec.Struct, frozen=True):
    """One key, good or not. Times are Unix milliseconds, 0 means never.

    `digest` is of the secret, `DIGEST_BYTES` long; empty once the key is revoked, so that it fits nothing.
    `kind` is empty for a key made here, `FOREIGN`, or what a newer version calls it: such a key fits nothing here.
    """

    id: str
    tenant: str
    role: Role
    name: str = ""
    digest: bytes = b""
    created_ms: int = 0
    expires_ms: int = 0
    revoked_ms: int = 0
    kind: str = ""

    @property
    def own(self) -> bool:
        """Whether a node of the cluster made it, so that its id stands in its text."""
        return not self.kind

    @property
    def foreign(self) -> bool:
        """Whether another gateway made it."""
        return self.kind == FOREIGN

    def active(self, wall_ms: int) -> bool:
        """Return whether it is good at that time."""
        return not self.revoked_ms and (not self.expires_ms or wall_ms < self.expires_ms)


class _Words(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key as it is kept; its id is the key of the entry."""

    tenant: _Text
    role: Role
    name: _Text = ""
    digest: Annotated[bytes, msgspec.Meta(max_length=DIGEST_BYTES)] = b""
    created_ms: _Time = 0
    expires_ms: _Time = 0
    revoked_ms: _Time = 0
    kind: _Kind = ""


_encoder = msgspec.msgpack.Encoder()


def encode_key(record: KeyRecord) -> bytes:
    """Return the bytes of a key; ValueError for one that no node would read."""
    said = msgspec.structs.asdict(record)
    del said["id"]
    try:
        return _encoder.encode(msgspec.convert(said, _Words, builtin_types=(bytes,)))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from error


def read_key(held: Held) -> tuple[KeyRecord, tuple[str, ...]]:
    """Return the key, and the names in it that are not known here; ValueError for no key."""
    said = read_map(held.value or b"")
    try:
        words = msgspec.convert(said, _Words, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    strange = tuple(sorted(name for name in said if name not in _Words.__struct_fields__))
    return KeyRecord(held.key, **msgspec.structs.asdict(words)), strange
