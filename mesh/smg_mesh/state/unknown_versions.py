"""Unknown versions: shared state that this version cannot read: kept,
passed on, left alone, reported.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from smg_mesh.crdt.entry import Held

Reason: TypeAlias = Literal["key", "value", "fields"]

_decoder = msgspec.msgpack.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry that a newer version wrote, or that makes no sense.

    `key`: no key of this kind is known. `value`: its bytes make no sense here and it does not count.
    `fields`: it counts, but for the fields named in `detail`.
    """

    key: str
    owner: str
    version: int
    reason: Reason
    detail: str = ""


def unreadable(held: Held, reason: Reason, detail: str = "") -> Unreadable:
    """Return the report about an entry."""
    return Unreadable(held.key, held.owner, held.version, reason, detail[:256])


def read_map(value: bytes) -> dict[str, object]:
    """Return the map of names that a value holds; ValueError for anything else."""
    try:
        return _decoder.decode(value)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ValueError(f"no map of names: {error}") from error
