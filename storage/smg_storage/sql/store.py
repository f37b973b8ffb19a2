"""SQL store: the store over tables."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.options import StoreOptions
from smg_storage.records import Access, Committed, PoolFigures, StoreFigures, Turn
from smg_storage.sql.commit_grouping import Grouping, Outcome
from smg_storage.sql.database_urls import make_private
from smg_storage.sql.databases import Database
from smg_storage.sql.executor import Executor
from smg_storage.sql.operations import housekeeping as upkeep
from smg_storage.sql.operations import turns
from smg_storage.sql.schema.revision import is_older
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.statements.all_statements import Statements
from smg_storage.sql.store_conversations import SqlConversations
from smg_storage.sql.store_responses import SqlResponses
from smg_storage.sql.store_runs import SqlRuns

Migrate = Callable[[], Awaitable[None]]
"""Bring the tables of this store's database up to date; StoreError if that does not work."""

_START_S: Final = 30.0
_GROUP_S: Final = 60.0
"""A group is given up when its leader is; this is only so that it ends at all."""


class SqlStore(SqlConversations, SqlResponses, SqlRuns):
    """A history in SQLite, PostgreSQL or Oracle."""

    def __init__(
        self,
        kind: str,
        open_database: Callable[[], Database],
        tables: Tables,
        *,
        options: StoreOptions,
        now_us: Callable[[], int],
        migrate: Migrate | None = None,
        path: str = "",
    ) -> None:
        super().__init__(Executor(open_database, Statements(tables, kind), now_us))
        self._kind = kind
        self._migrate = migrate
        self._path = path
        wanted = options.auto_migrate
        self._auto_migrate = kind == "sqlite" if wanted is None else wanted
        self._tables = tables
        # SQLite has one writer, whoever it is; elsewhere a group that waits for a lock holds up only half of us.
        self._grouping = Grouping(
            self._write_group, turns_max=options.group_turns_max, lanes=1 if path else 2
        )

    @property
    def kind(self) -> str:
        """Which it is."""
        return self._kind

    @property
    def shared(self) -> bool:
        """Whether all nodes see the same: not in a file."""
        return not self._path

    async def start(self) -> None:
        """Connect, and see to it that the tables are new enough."""
        if self._path:
            await self._make_file()
        await self._door.open()
        found = await self._door.write_for_all(upkeep.found_revision, timeout_s=_START_S)
        if is_older(found) and self._auto_migrate:
            await self._bring_up_to_date()
        await self._door.write_for_all(upkeep.check_revision, timeout_s=_START_S)

    async def _make_file(self) -> None:
        try:
            await asyncio.to_thread(make_private, self._path)
        except OSError as error:
            message = f"the file of the history cannot be made ({type(error).__name__})"
            raise StoreError(StoreErrorKind.UNAVAILABLE, message) from None

    async def _bring_up_to_date(self) -> None:
        # Where nothing is there, the tables of today are made at once, without the steps that led to them.
        made = await self._door.write_for_all(upkeep.create_tables, timeout_s=_START_S)
        if not made and self._migrate is not None:
            await self._migrate()

    async def ping(self, *, timeout_s: float) -> None:
        """Return if the database answers, and takes writes."""
        await self._door.write_for_all(upkeep.ping, timeout_s=timeout_s)

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        """Delete some of what is over."""
        return await self._door.write_for_all(
            lambda work: upkeep.purge(work, now_us, batch), timeout_s=timeout_s
        )

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        """Count."""
        return await self._door.read_for_all(upkeep.figures, timeout_s=timeout_s)

    async def tenant_figures(self, access: Access) -> StoreFigures:
        """Count what one tenant has, and estimate its documents by the newest."""
        return await self._door.read(access, upkeep.tenant_figures)

    def pool(self) -> PoolFigures | None:
        """Return how busy the connections are."""
        return self._door.pool()

    async def close(self) -> None:
        """Finish what was begun, and disconnect."""
        await self._door.close()

    async def commit_turn(self, access: Access, turn: Turn) -> Committed:
        """Write all that a response leaves behind, together with the turns of others."""
        try:
            async with asyncio.timeout(access.timeout_s):
                return await self._grouping.commit(access.tenant, turn)
        except TimeoutError:
            message = f"{self._kind} has not kept a turn in time"
            raise StoreError(StoreErrorKind.UNAVAILABLE, message) from None

    async def _write_group(self, group: Sequence[tuple[str, Turn]]) -> Sequence[Outcome]:
        return await self._door.write_for_all(
            lambda work: turns.commit_turns(work, group), timeout_s=_GROUP_S
        )
