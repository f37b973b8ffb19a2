"""Key record: one API key as all nodes know it: its owner, its rights,
its end, a digest of its secret.

A node passes on what it does not know in a record, and goes by the rest. For restrictions that would be wrong: who
does not know one must not let the key in at all. So the role of a restricted key is written with a mark behind it.
A version that knew three roles only does not read such a role, nor a new one, and the key is unknown there; a version
that knows the mark does not read a marked record with anything in it that it does not know.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.state.unknown_versions import read_map

Role: TypeAlias = str
"""Name of what a key may do; nodes know what it stands for."""
ADMIN: Final = "admin"
"""The role whose keys close the cluster."""
ENTRIES_MAX: Final = 32
"""Of models, networks and routes each."""
TENANT_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
"""Stands in scopes, labels and headers, so nothing that means something there."""
NAME_CHARACTERS_MAX: Final = 64
DIGEST_BYTES: Final = 32
FOREIGN: Final = "foreign"
"""Kind of a key that another gateway made: the digest is of all of it, and its id follows from that."""
_TIME_MAX_MS: Final = (1 << 53) - 1

_MARK: Final = "!"
"""Behind the role of a record that is to be read only by who knows all of it."""

_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS_MAX)]
_Role: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_.-]{0,31}!?\Z")]
_Entries: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=128)], ...],
    msgspec.Meta(max_length=ENTRIES_MAX),
]
_Kind: TypeAlias = Annotated[str, msgspec.Meta(max_length=16)]
_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MAX_MS)]


class KeyRecord(msgspec.Struct, frozen=True):
    """One key, good or not. Times are Unix milliseconds, 0 means never.

    `digest` is of the secret, `DIGEST_BYTES` long; empty once the key is revoked, so that it fits nothing.
    `models`, `networks`, `routes` and `max_priority` say what it is restricted to, each empty for anything.
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
    models: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    max_priority: str = ""

    @property
    def restricted(self) -> bool:
        """Whether it may be used for less than its role says."""
        return bool(self.models or self.networks or self.routes or self.max_priority)

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
    role: _Role
    name: _Text = ""
    digest: Annotated[bytes, msgspec.Meta(max_length=DIGEST_BYTES)] = b""
    created_ms: _Time = 0
    expires_ms: _Time = 0
    revoked_ms: _Time = 0
    models: _Entries = ()
    networks: _Entries = ()
    routes: _Entries = ()
    max_priority: _Text = ""
    kind: _Kind = ""


_encoder = msgspec.msgpack.Encoder()


def encode_key(record: KeyRecord) -> bytes:
    """Return the bytes of a key; ValueError for one that no node would read."""
    said = msgspec.structs.asdict(record)
    del said["id"]
    if record.role.endswith(_MARK):
        raise ValueError("a role has no mark of its own")
    if record.restricted:
        said["role"] = record.role + _MARK
    try:
        return _encoder.encode(msgspec.convert(said, _Words, builtin_types=(bytes,)))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from error


def read_key(held: Held) -> tuple[KeyRecord, tuple[str, ...]]:
    """Return the key, and the names in it that are not known here; ValueError for no key, and for one that none may
    read who does not know all of it.
    """
    said = read_map(held.value or b"")
    try:
        words = msgspec.convert(said, _Words, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    strange = tuple(sorted(name for name in said if name not in _Words.__struct_fields__))
    fields = msgspec.structs.asdict(words)
    if words.role.endswith(_MARK):
        if strange:
            raise ValueError(f"it is restricted by what is not known here: {', '.join(strange)}")
        fields["role"] = words.role.removesuffix(_MARK)
    return KeyRecord(held.key, **fields), strange
