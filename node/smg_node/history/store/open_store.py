"""Opening of the history store from settings: URL, timeouts, pool sizes, table and column names."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from smg_node.config.frozen_settings import Settings
from smg_storage.options import Bounds, SchemaNames, StoreOptions, TableNames

if TYPE_CHECKING:
    from smg_storage.store import HistoryStore
    from smg_storage.url import StoreUrl

_log = logging.getLogger("smg_node.history")
_MIGRATE: Final[Mapping[str, bool | None]] = {"auto": None, "on": True, "off": False}


def open_history(settings: Settings, now_us: Callable[[], int]) -> "HistoryStore":
    """Return the store of these settings, not started. It loads drivers, so call it in a thread.

    StoreUrlError or NamingError, both ValueErrors, if there is no such store.
    """
    from smg_node.config.store_tls import shows_password
    from smg_storage.open import open_store

    url = store_url(settings)
    if shows_password(url):
        _log.warning(
            "the password of the store at %s crosses the network in plain text: %s speaks TLS",
            url.redacted(),
            "rediss://" if url.kind == "redis" else "?sslmode=verify-full or storage.tls",
        )
    return open_store(url, options=store_options(settings), now_us=now_us)


def store_url(settings: Settings) -> "StoreUrl":
    """Return the URL of the history store; a relative file path lies in the data directory."""
    from msgspec.structs import replace

    from smg_storage.open import known_stores
    from smg_storage.url import parse_store_url

    url = parse_store_url(settings.storage.url, plugged_in=known_stores().kinds)
    tls = settings.storage.tls
    if tls.authority is not None:
        from smg_node.config.store_tls import secured

        shown = (str(tls.certificate or ""), str(tls.key or ""))
        return secured(url, authority=str(tls.authority), certificate=shown[0], key=shown[1])
    if url.kind != "sqlite" or url.path.startswith(("/", "~")):
        return url
    return replace(url, path=str(settings.data_dir.absolute() / url.path))


def store_options(settings: Settings) -> StoreOptions:
    """Return the options with which the store is opened."""
    storage = settings.storage
    pool, memory = storage.pool, storage.memory
    return StoreOptions(
        application_name=f"smg-node/{settings.name}",
        schema=schema_names(settings),
        auto_migrate=_MIGRATE[storage.auto_migrate],
        pool_size=pool.size,
        acquire_timeout_s=pool.acquire_s,
        connect_timeout_s=pool.connect_s,
        statement_timeout_s=pool.statement_s,
        recycle_s=pool.recycle_s,
        group_turns_max=pool.group_turns,
        redis_connections=pool.redis_connections,
        redis_wait_replicas=pool.redis_replicas,
        redis_wait_ms=pool.redis_replicas_ms,
        memory=Bounds(
            responses_max=memory.responses_max,
            items_max=memory.items_max,
            bytes_max=memory.max_bytes,
            age_max_s=memory.age_s,
        ),
    )


def schema_names(settings: Settings) -> SchemaNames:
    """Return the names of tables and columns."""
    storage = settings.storage
    return SchemaNames(
        owner=storage.owner,
        tables={
            name: TableNames(
                table=mapping.table,
                columns=mapping.column_names,
                extra_columns=mapping.extra_types,
                skip_columns=mapping.skip_columns,
            )
            for name, mapping in storage.tables.items()
        },
    )
