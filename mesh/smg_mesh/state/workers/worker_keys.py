"""Worker keys: which worker a key of the namespace `workers` belongs to, and what it is about.

ID                     only ever removed: what is not later than that removal does not count
ID/api, /kubernetes, /dns, /static@NODE, /file@NODE     who says that it exists, and how it is
ID/patch, ID/drain     what an operator changed about it, while it exists
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from smg_mesh.config import NAME_PATTERN

Source: TypeAlias = Literal["api", "file", "kubernetes", "dns", "static"]
Listing: TypeAlias = Literal["static", "file"]
SOURCES: Final[tuple[Source, ...]] = ("api", "file", "kubernetes", "dns", "static")
"""The earlier one's word counts more."""
LISTINGS: Final[tuple[Listing, ...]] = ("static", "file")
"""What each node says for itself, from its own flags and files."""
SHARED: Final[tuple[Source, ...]] = ("kubernetes", "dns")
"""What is found by watching something that all nodes could watch: one of them writes it for all."""
_KINDS: Final[Mapping[str, Source]] = MappingProxyType({source: source for source in SOURCES})
IDENTITY, PATCH, DRAIN = "", "patch", "drain"
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PART: Final = re.compile(rf"patch|drain|api|kubernetes|dns|(?:static|file)@{NAME_PATTERN}")


@dataclass(frozen=True, slots=True)
class WorkerKey:
    """A key taken apart.

    `part` is what stands behind the slash, empty for the identity; `source` None if it is about none.
    """

    worker_id: str
    part: str
    source: Source | None = None

    def __str__(self) -> str:
        return f"{self.worker_id}/{self.part}" if self.part else self.worker_id


def read_key(key: str) -> WorkerKey | None:
    """Return the parts of a key; None for one that this version does not know."""
    worker_id, slash, part = key.partition("/")
    if not _ID.fullmatch(worker_id) or (slash and not _PART.fullmatch(part)):
        return None
    return WorkerKey(worker_id, part, _KINDS.get(part.partition("@")[0]))


def part_of(source: Source, me: str) -> str:
    """Return the part under which node `me` writes what `source` says."""
    return f"{source}@{me}" if source in LISTINGS else source


def own_key(worker_id: str, part: str) -> str:
    """Return the key to write; ValueError for an id that cannot be."""
    if not _ID.fullmatch(worker_id):
        raise ValueError(f"{worker_id[:64]!r} is no id of a worker")
    return str(WorkerKey(worker_id, part))
