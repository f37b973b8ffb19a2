"""Storage knobs: the store of chats, its pool, table mapping and quotas, and the spool while it is
away.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from smg_node.config.plugins import installed
from smg_node.config.schema.declaration import Section, choice, number, place, text, words
from smg_node.config.store_tls import secured
from smg_storage.url import StoreUrlError, parse_store_url

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}", re.ASCII)
_HEADER: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_PAIR: Final = re.compile(r"([^=\s]+)=(.+)")
_NAMES_MAX: Final = 64
_TABLES_MAX: Final = 32
_HOOKS_MAX: Final = 4  # each has a quarter of the second that all of them have
_TIMES: Final = "below a tenth of a second nothing answers in time; a request waits for the store"

_QUOTA_WHY: Final = "0 limits nothing; nor does any number in a cluster of Redis servers, which cannot count what a tenant has"


class TableMapping(Section):
    """What one table and its columns are called in a database that was there before, and what else is in it."""

    table: str = text("", "Name of the table. Empty: its own.", most=63, metavar="NAME")
    columns: tuple[str, ...] = words(
        (), "Columns of another name, as OURS=THEIRS.", most=_NAMES_MAX, metavar="OURS=THEIRS"
    )
    extra_columns: tuple[str, ...] = words(
        (),
        "Columns that hooks fill, as NAME=TYPE or NAME=TYPE:DEFAULT.",
        most=_NAMES_MAX,
        metavar="NAME=TYPE",
    )
    skip_columns: tuple[str, ...] = words(
        (), "Columns that are not there.", most=_NAMES_MAX, metavar="NAME"
    )

    @field_validator("columns", "extra_columns")
    @classmethod
    def _pairs(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        for pair in pairs:
            found = _PAIR.fullmatch(pair)
            if found is None or not _NAME.fullmatch(found[1]):
                raise ValueError(f"{pair[:80]!r} is not NAME=…")
        if len({pair.partition("=")[0] for pair in pairs}) < len(pairs):
            raise ValueError("a column is named twice")
        return pairs

    @property
    def column_names(self) -> Mapping[str, str]:
        """Our names of columns to theirs."""
        return dict(_split(pair) for pair in self.columns)

    @property
    def extra_types(self) -> Mapping[str, Mapping[str, str]]:
        """Columns of hooks, each with its type and its default ("" for none)."""
        found = {}
        for pair in self.extra_columns:
            name, said = _split(pair)
            kind, _, default = said.partition(":")
            found[name] = {"type": kind, "default": default}
        return found


class StorageTls(Section):
    """Whom to trust behind postgresql:// and rediss://, and what to show to servers that ask who calls."""

    authority: Path | None = place(
        None,
        "File of the authorities whose word the server is believed on, for the host in the URL.",
        metavar="FILE",
    )
    certificate: Path | None = place(
        None, "File of the certificate that the server is shown.", metavar="FILE"
    )
    key: Path | None = place(None, "File of the certificate's private key.", metavar="FILE")

    @field_validator("authority", "certificate", "key")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @model_validator(mode="after")
    def _whole(self) -> "StorageTls":
        if (self.certificate is None) != (self.key is None):
            raise ValueError("storage.tls.certificate and storage.tls.key are needed together")
        if self.certificate is not None and self.authority is None:
            raise ValueError("storage.tls.certificate needs storage.tls.authority")
        return self


class StoragePool(Section):
    """Connections to a database or to Redis, and how long anything is waited for."""

    size: int = number(
        4,
        "Most connections to a database.",
        low=1,
        high=256,
        why="one at least; servers allow a few hundred for all nodes together",
    )
    acquire_s: float = number(2, "Seconds to wait for one of them.", low=0.1, high=60, why=_TIMES)
    connect_s: float = number(5, "Seconds to wait for a new one.", low=0.1, high=60, why=_TIMES)
    statement_s: float = number(
        5, "Seconds to wait for what is asked of it.", low=0.1, high=60, why=_TIMES
    )
    recycle_s: int = number(
        1_800,
        "Seconds after which one is replaced.",
        low=10,
        high=86_400,
        why="firewalls forget what is idle; making one takes milliseconds",
    )
    group_turns: int = number(
        64,
        "Most turns that are committed together.",
        low=1,
        high=1_024,
        why="1 commits each alone; more than a thousand is a transaction that others wait for",
    )
    redis_connections: int = number(
        16,
        "Most connections to each Redis server.",
        low=1,
        high=1_024,
        why="one at least; a server takes 10,000 by itself",
    )
    redis_replicas: int = number(
        0,
        "Copies that a commit to Redis waits for.",
        low=0,
        high=16,
        why="0 trusts the one server; there are rarely more than a few copies",
    )
    redis_replicas_ms: int = number(
        100,
        "Milliseconds to wait for those copies.",
        low=1,
        high=10_000,
        why="at least one; an answer's end waits for it",
    )


class StorageMemory(Section):
    """How much is remembered in memory before the oldest thread goes."""

    responses_max: int = number(
        10_000, "Most responses.", low=1, high=10_000_000, why="one at least; memory is finite"
    )
    items_max: int = number(
        100_000,
        "Most items of conversations.",
        low=1,
        high=100_000_000,
        why="one at least; memory is finite",
    )
    max_bytes: int = number(
        512 << 20,
        "Most bytes of documents.",
        low=1 << 20,
        high=1 << 40,
        why="a mebibyte holds a chat; a tebibyte is beyond any machine",
    )
    age_s: int = number(
        86_400,
        "Seconds a thread is kept after it was written to last.",
        low=1,
        high=31_536_000,
        why="a second for tests; nobody's process lives for more than a year",
    )


class StorageSpool(Section):
    """Where turns wait on this node's own disk while the store is away."""

    max_bytes: int = number(
        1 << 30,
        "Most bytes of turns that wait; more are refused before they run.",
        low=1 << 20,
        high=1 << 40,
        why="a mebibyte holds a few turns; a tebibyte takes hours to be written again",
    )
    turns_max: int = number(
        100_000,
        "Most turns that wait.",
        low=1,
        high=10_000_000,
        why="one at least; each takes some hundred bytes of memory",
    )


class StorageQuota(Section):
    """How much each tenant may keep; what is over it is refused before it runs."""

    responses_max: int = number(
        0, "Most responses of a tenant.", low=0, high=10**12, why=_QUOTA_WHY
    )
    conversations_max: int = number(
        0, "Most conversations of a tenant.", low=0, high=10**12, why=_QUOTA_WHY
    )
    max_bytes: int = number(
        0, "Most bytes of a tenant's documents.", low=0, high=10**15, why=_QUOTA_WHY
    )


class Storage(Section):
    """Where chats are remembered, and what happens when that is away."""

    url: str = text(
        "sqlite:///history.db",
        "Where history is kept: `sqlite:///FILE` (below the data directory unless it begins with a slash),"
        " `memory:`, `none:`, postgresql://…, redis://…, redis+cluster://… or oracle://….",
        most=4_096,
        short="--store",
        metavar="URL",
        in_file=True,
    )
    durability: Literal["spool", "strict"] = choice(
        "spool",
        "When the store is away: `spool` keeps turns on this node's disk and writes them later,"
        " `strict` refuses what is to be kept.",
    )
    auto_migrate: Literal["auto", "on", "off"] = choice(
        "auto",
        "Whether a node that starts brings old tables up to date: `auto` only in SQLite, which nobody else uses.",
    )
    timeout_s: float = number(
        5, "Seconds that one read or write of history may take.", low=0.1, high=60, why=_TIMES
    )
    slow_s: float = number(
        1,
        "From so many seconds on, of one in a hundred operations, the store is called slow.",
        low=0.001,
        high=60,
        why="a store on the same machine takes a millisecond; a minute is no store",
    )
    owner: str = text(
        "",
        "Schema of the tables, or what all keys in Redis begin with. Empty: the database's own, or `smg`.",
        most=63,
        metavar="NAME",
    )
    context_headers: tuple[str, ...] = words(
        (),
        "Headers of requests that hooks of the store are shown.",
        most=32,
        metavar="NAME",
    )
    hooks: tuple[str, ...] = words(
        (),
        "Hooks that have a say in what is kept, in this order: NAME as it is installed, or NAME:open for one"
        " without which things go on when it fails.",
        most=_HOOKS_MAX,
        metavar="NAME",
    )
    pool: StoragePool = Field(default_factory=StoragePool)
    memory: StorageMemory = Field(default_factory=StorageMemory)
    spool: StorageSpool = Field(default_factory=StorageSpool)
    quota: StorageQuota = Field(default_factory=StorageQuota)
    tls: StorageTls = Field(default_factory=StorageTls)
    tables: dict[str, TableMapping] = Field(default_factory=dict, max_length=_TABLES_MAX)

    @field_validator("url")
    @classmethod
    def _url(cls, url: str) -> str:
        plugged_in = tuple(name for name, _ in installed("smg.stores"))
        try:
            parse_store_url(url, plugged_in=plugged_in)
        except StoreUrlError as error:
            raise ValueError(str(error)) from None
        return url

    @field_validator("hooks")
    @classmethod
    def _hooks(cls, hooks: tuple[str, ...]) -> tuple[str, ...]:
        known = [name for name, _ in installed("smg.storage_hooks")]
        for hook in hooks:
            name, colon, mode = hook.partition(":")
            if name not in known:
                listed = ", ".join(known) or "none"
                raise ValueError(f"no hook {name[:80]!r} is installed; there are: {listed}")
            if colon and mode not in ("open", "closed"):
                raise ValueError(f"{hook[:80]!r} is not NAME, NAME:open or NAME:closed")
        return hooks

    @field_validator("owner")
    @classmethod
    def _owner(cls, name: str) -> str:
        if name and not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name (letters, digits, _ and $)")
        return name

    @field_validator("context_headers")
    @classmethod
    def _headers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        lowered = tuple(name.lower() for name in names)
        for name in lowered:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name[:80]!r} is not the name of a header")
            if name in ("authorization", "cookie", "x-api-key", "proxy-authorization"):
                raise ValueError(f"{name} holds a secret, which is shown to nobody")
        return lowered

    @model_validator(mode="after")
    def _can_be_secured(self) -> "Storage":
        if self.tls.authority is not None:
            plugged_in = tuple(name for name, _ in installed("smg.stores"))
            try:
                url = parse_store_url(self.url, plugged_in=plugged_in)
                secured(url, authority=str(self.tls.authority))
            except StoreUrlError as error:
                raise ValueError(str(error)) from None
        return self

    @property
    def kind(self) -> str:
        """Which store it is, in one word."""
        plugged_in = tuple(name for name, _ in installed("smg.stores"))
        return parse_store_url(self.url, plugged_in=plugged_in).kind


def _split(pair: str) -> tuple[str, str]:
    name, _, said = pair.partition("=")
    return name, said
