"""Options of every store: all numbers, with defaults; the node's configuration fills them in."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

_DAY_S: Final = 86_400
_MIB: Final = 1 << 20


class TableNames(msgspec.Struct, frozen=True):
    """Names of a table and its columns in an operator's own database, and what else is in it."""

    table: str = ""
    """Empty: our own name."""
    columns: Mapping[str, str] = MappingProxyType({})
    """Our name of a column to theirs."""
    extra_columns: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Columns that hooks fill: name to `type` and `default`."""
    skip_columns: tuple[str, ...] = ()


class SchemaNames(msgspec.Struct, frozen=True):
    """Names of the schema and of all its tables."""

    owner: str = ""
    """A schema of the database, or the prefix of all keys in Redis; empty: the default of either."""
    tables: Mapping[str, TableNames] = MappingProxyType({})


class Bounds(msgspec.Struct, frozen=True):
    """Bounds of a store in memory, beyond which the oldest thread goes."""

    responses_max: int = 10_000
    items_max: int = 100_000
    bytes_max: int = 512 * _MIB
    age_max_s: int = _DAY_S
    """Since a thread was written to last."""


class StoreOptions(msgspec.Struct, frozen=True):
    """Options of a store, of any kind; each store reads what concerns it."""

    application_name: str = "smg-node"
    """What the server of a database is told about who is connected."""
    schema: SchemaNames = SchemaNames()
    auto_migrate: bool | None = None
    """Whether to bring old tables up to date at start; None: only where nobody else uses them (SQLite)."""

    pool_size: int = 4
    acquire_timeout_s: float = 2.0
    connect_timeout_s: float = 5.0
    statement_timeout_s: float = 5.0
    recycle_s: int = 1_800
    """A connection older than this is replaced: firewalls forget what is idle."""
    group_turns_max: int = 64
    """How many turns share a commit."""

    sqlite_readers: int = 2
    sqlite_busy_timeout_ms: int = 5_000
    sqlite_mmap_bytes: int = 256 * _MIB
    sqlite_checkpoint_bytes: int = 64 * _MIB

    redis_connections: int = 16
    redis_wait_replicas: int = 0
    """How many copies a commit waits for; what a server says it keeps is else only on that server."""
    redis_wait_ms: int = 100

    deflate_bytes_min: int = 256 << 10
    """Documents longer than this are kept deflated, where the store does not do so itself."""
    memory: Bounds = Bounds()
