"""The tables of SMG (Shepherd Model Gateway) in PostgreSQL, as it makes them itself, and rows as it writes them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg

BEGAN: Final = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TABLES: Final[Sequence[str]] = (
    "CREATE TABLE conversations (id VARCHAR(64) PRIMARY KEY, created_at TIMESTAMPTZ, metadata JSON)",
    "CREATE TABLE conversation_items (id VARCHAR(64) PRIMARY KEY, response_id VARCHAR(64),"
    " item_type VARCHAR(32) NOT NULL, role VARCHAR(32), content JSON, status VARCHAR(32), created_at TIMESTAMPTZ)",
    "CREATE TABLE conversation_item_links (conversation_id VARCHAR(64), item_id VARCHAR(64) NOT NULL,"
    " added_at TIMESTAMPTZ, CONSTRAINT pk_conv_item_link PRIMARY KEY (conversation_id, item_id))",
    "CREATE INDEX conv_item_links_conv_idx ON conversation_item_links (conversation_id, added_at)",
    "CREATE TABLE responses (id VARCHAR(64) PRIMARY KEY, conversation_id VARCHAR(64),"
    " previous_response_id VARCHAR(64), input JSON, created_at TIMESTAMPTZ, safety_identifier VARCHAR(128),"
    " model VARCHAR(128), raw_response JSON)",
    "CREATE INDEX responses_safety_idx ON responses (safety_identifier)",
    "CREATE TABLE _schema_versions (version INTEGER NOT NULL PRIMARY KEY, description VARCHAR(512),"
    " applied_at TIMESTAMPTZ NOT NULL DEFAULT NOW())",
    "INSERT INTO _schema_versions (version, description) VALUES (1, 'one'), (2, 'two'), (3, 'three')",
)


class SmgWriter:
    """Writes what SMG writes."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection

    async def make_tables(self) -> None:
        """Make SMG's tables in an empty database."""
        for statement in TABLES:
            await self._connection.execute(statement)

    async def conversation(self, name: str, metadata: object = None) -> None:
        """Begin a conversation."""
        said = None if metadata is None else json.dumps(metadata)
        await self._connection.execute(
            "INSERT INTO conversations VALUES ($1, $2, $3)", name, BEGAN, said
        )

    async def item(
        self, name: str, content: object, *, kind: str = "message", role: str | None = "user"
    ) -> None:
        """Write an item that is nowhere yet."""
        await self._connection.execute(
            "INSERT INTO conversation_items VALUES ($1, NULL, $2, $3, $4, 'completed', $5)",
            *(name, kind, role, json.dumps(content), BEGAN),
        )

    async def link(self, conversation: str, item: str, after_s: float) -> None:
        """Append an item to a conversation."""
        await self._connection.execute(
            "INSERT INTO conversation_item_links VALUES ($1, $2, $3)",
            *(conversation, item, BEGAN + timedelta(seconds=after_s)),
        )

    async def response(
        self, name: str, raw: str | None, *, asked: str | None = "[]", previous: str | None = None
    ) -> None:
        """Write a response; JSON as the text that it is to be."""
        await self._connection.execute(
            "INSERT INTO responses VALUES ($1, NULL, $2, $3, $4, 'somebody', 'm', $5)",
            *(name, previous, asked, BEGAN, raw),
        )
