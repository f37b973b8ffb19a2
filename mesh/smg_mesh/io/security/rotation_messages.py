"""Rotation messages: questions between nodes about the keyring: msgpack, read with checks."""

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.io.security.key_files import KEYS_MAX
from smg_mesh.io.security.versioned_ring import VERSION_MAX
from smg_mesh.io.streams import AskError

Version: TypeAlias = Annotated[int, Meta(ge=0, le=VERSION_MAX)]
Key: TypeAlias = Annotated[bytes, Meta(min_length=32, max_length=32)]
Fingerprint: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{8}$")]


class List(msgspec.Struct, frozen=True, tag="list"):
    """Question: which ring is held?"""


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Question: which ring is held, with its keys?"""


class Adopt(msgspec.Struct, frozen=True, tag="adopt"):
    """Request to hold this ring, the first key primary."""

    version: Version
    keys: Annotated[list[Key], Meta(min_length=1, max_length=KEYS_MAX)]


class Ring(msgspec.Struct, frozen=True):
    """The answer to all three: the ring held now. Keys only where they were asked for."""

    version: Version
    fingerprints: Annotated[list[Fingerprint], Meta(min_length=1, max_length=KEYS_MAX)]
    keys: Annotated[list[Key], Meta(max_length=KEYS_MAX)]


Question: TypeAlias = List | Fetch | Adopt

_QUESTION: Final[msgspec.msgpack.Decoder[Question]] = msgspec.msgpack.Decoder(Question)
_RING: Final = msgspec.msgpack.Decoder(Ring)


def decode_question(payload: bytes) -> Question:
    """Return the question; AskError if it is none."""
    try:
        return _QUESTION.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise AskError("wire", f"this is no question about the keyring: {error}") from error


def decode_ring(payload: bytes) -> Ring:
    """Return the ring; AskError if it is none."""
    try:
        return _RING.decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise AskError("wire", f"the answer is no ring: {error}") from error
