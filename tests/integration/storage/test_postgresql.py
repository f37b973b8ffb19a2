import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.options import SchemaNames, StoreOptions
from smg_storage.records import Access, EventBlob, Turn
from smg_storage.sql.database_urls import postgresql_engine
from smg_storage.sql.open import open_store
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock
from support.store_contract.registered import begun
from support.store_contract.stage import CONFLICT, Stage, refused
from support.stores.postgres_server import Postgres, running_postgres
from support.stores.sql_costs import COSTS, count
from support.stores.sql_stores import (
    PostgresqlMaker,
    database_of_tables,
    make_tables,
    opened,
    tell,
)

pytestmark = pytest.mark.integration
AWAY = StoreErrorKind.UNAVAILABLE
HANG_UP = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    with database_of_tables(postgres) as made:
        yield made


@asynccontextmanager
async def stage_at(url: str, options: StoreOptions | None = None) -> AsyncIterator[Stage]:
    async with PostgresqlMaker(url, options).open() as both:
        yield Stage(both)


async def test_every_operation_says_as_little_as_in_sqlite(url: str) -> None:
    async with stage_at(url) as stage:
        counted = await count(stage)
    assert counted == {name: cost for name, (cost, _) in COSTS.items()}


async def test_a_lost_connection_is_not_noticed(url: str) -> None:
    async with stage_at(url) as stage:
        conversation_id = await stage.new_conversation()
        turn = stage.turn(conversation_id)
        assert await tell(url, HANG_UP) != [(0,)]
        assert (await stage.store.commit_turn(stage.access, turn)).again is False
        assert await tell(url, HANG_UP) != [(0,)]
        assert await stage.listed(conversation_id) == list(turn.links)
        assert await tell(url, HANG_UP) != [(0,)]
        assert (await stage.store.commit_turn(stage.access, turn)).again is True


async def test_a_server_that_is_killed_is_told_and_comes_back_with_all_it_acknowledged(
    tmp_path: Path,
) -> None:
    with running_postgres(tmp_path, own=True) as server:
        async with server.database(make_tables, name="history") as url, stage_at(url) as stage:
            conversations = [await stage.new_conversation() for _ in range(4)]
            kept: list[Turn] = []
            unknown: list[Turn] = []
            told: list[StoreError] = []

            async def write(conversation_id: str) -> None:
                while not unknown:
                    turn = stage.turn(conversation_id)
                    try:
                        await stage.store.commit_turn(stage.access, turn)
                    except StoreError as error:
                        told.append(error)
                        unknown.append(turn)
                    else:
                        kept.append(turn)
                        if len(kept) == 25:
                            server.server.kill9()

            await asyncio.gather(*(write(each) for each in conversations))
            assert {error.kind for error in told} == {AWAY}
            assert not any("127.0.0.1" in error.message for error in told)
            with refused(AWAY):
                await stage.store.ping(timeout_s=5)
            server.server.start()
            await stage.store.ping(timeout_s=30)
            for turn in unknown:
                await stage.store.commit_turn(stage.access, turn)
            for conversation_id in conversations:
                mine = [t for t in kept + unknown if t.response.conversation_id == conversation_id]
                linked = {item_id for turn in mine for item_id in turn.links}
                listed = await stage.listed(conversation_id)
                assert set(listed) == linked
                assert len(listed) == len(linked)
                assert await stage.positions(conversation_id) == list(range(1, len(linked) + 1))
            for turn in kept + unknown:
                assert await stage.store.get_response(stage.access, turn.response.id) is not None


async def test_who_waits_too_long_for_a_row_is_told_and_the_connection_is_well(url: str) -> None:
    async with stage_at(url, StoreOptions(pool_size=1, acquire_timeout_s=0.2)) as stage:
        conversation_id = await stage.new_conversation()
        engine = postgresql_engine(parse_store_url(url), StoreOptions())
        hurried = structs.replace(stage.access, timeout_s=1.5)
        async with engine.connect() as other:
            await other.execute(text("SELECT id FROM conversations FOR UPDATE"))
            waiting = asyncio.gather(
                stage.store.commit_turn(hurried, stage.turn(conversation_id)),
                return_exceptions=True,
            )
            locked = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not (await other.execute(locked)).scalar_one():
                assert not waiting.done()
                await asyncio.sleep(0.01)
            # The only connection is taken.
            with refused(AWAY):
                await stage.store.get_conversation(stage.access, conversation_id)
            (answer,) = await waiting
            assert isinstance(answer, StoreError)
            assert answer.kind is AWAY
            await other.rollback()
        await engine.dispose()
        await stage.store.commit_turn(stage.access, stage.turn(conversation_id))


async def test_who_was_taken_over_while_it_wrote_keeps_nothing(url: str) -> None:
    async with PostgresqlMaker(url).open() as opened:
        stage = Stage(opened)
        made = await stage.kept(begun(stage))
        engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
        async with engine.connect() as other, asyncio.TaskGroup() as group:
            taken = text("UPDATE responses SET lease_token = 2 WHERE id = :id")
            await other.execute(taken, {"id": made.id})
            late = group.create_task(_late_events(stage, made.id))
            # It waits for what has begun, and then sees that it has lost.
            done, _ = await asyncio.wait([late], timeout=0.3)
            assert not done
            await other.commit()
        await engine.dispose()
        assert late.result() is CONFLICT
        assert not await stage.store.read_events(stage.access, made.id, after=-1, limit=9)


async def _late_events(stage: Stage, response_id: str) -> StoreErrorKind | None:
    parts = [EventBlob(0, 3, b"late")]
    try:
        await stage.store.append_events(
            stage.access, response_id, parts, expires_us=stage.in_s(60), token=1
        )
    except StoreError as error:
        return error.kind
    return None


async def test_many_write_to_the_same_conversations_in_any_order(url: str) -> None:
    async with stage_at(url) as stage:
        conversations = [await stage.new_conversation() for _ in range(4)]
        shared = [
            await stage.store.create_item(stage.access, stage.item(f"shared {n}")) for n in range(4)
        ]
        turns = []
        for number in range(48):
            turn = stage.turn(conversations[number % 4], items=1)
            borrowed = [shared[(number + number // 4 + step) % 4].id for step in range(2)]
            turns.append(structs.replace(turn, links=[*turn.links, *borrowed]))
        stores = (stage.store, stage.other)
        await asyncio.gather(
            *(stores[n % 2].commit_turn(stage.access, turn) for n, turn in enumerate(turns))
        )
        for conversation_id in conversations:
            positions = await stage.positions(conversation_id)
            assert positions == list(range(1, len(positions) + 1))
            assert len(positions) == 12 + 4
        counted = await tell(url, "SELECT DISTINCT refs FROM conversation_items ORDER BY refs")
        assert counted == [(1,), (4,)]


async def test_a_database_that_takes_no_writes_is_told(postgres: Postgres) -> None:
    async with postgres.database(make_tables, name="history") as url:
        name = url.rpartition("/")[2]
        await tell(url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        clock = Clock()
        store = open_store(parse_store_url(url), StoreOptions(), clock)
        await store.start()
        with pytest.raises(StoreError, match="takes no writes"):
            await store.ping(timeout_s=5)
        assert await store.get_response(Access(), "resp") is None
        with pytest.raises(StoreError, match="takes no writes"):
            await store.delete_response(Access(), "resp")
        await store.close()


async def test_a_server_that_is_not_there_is_told_without_its_password(url: str) -> None:
    away = "postgresql://smg:hunter2@127.0.0.1:9/history"
    store = open_store(parse_store_url(away), StoreOptions(), Clock())
    with pytest.raises(StoreError) as told:
        await store.start()
    assert told.value.kind is AWAY
    assert "hunter2" not in repr(told.value)
    assert told.value.__cause__ is None
    await store.close()
    missing = url.rpartition("/")[0] + "/nothing_of_that_name"
    store = open_store(parse_store_url(missing), StoreOptions(), Clock())
    with pytest.raises(StoreError, match="no database of that name"):
        await store.start()
    await store.close()


async def test_tables_are_not_made_unless_that_is_wanted(postgres: Postgres) -> None:
    async with postgres.database() as url:
        store = open_store(parse_store_url(url), StoreOptions(), Clock())
        with pytest.raises(StoreError, match="smg-admin db migrate"):
            await store.start()
        await store.close()


async def test_several_nodes_may_make_them_at_once(postgres: Postgres) -> None:
    async with postgres.database() as url:
        options = StoreOptions(auto_migrate=True)
        stores = [open_store(parse_store_url(url), options, Clock()) for _ in range(4)]
        await asyncio.gather(*(store.start() for store in stores))
        for store in stores:
            await store.ping(timeout_s=5)
            await store.close()


async def test_tables_may_be_in_a_schema_of_their_own(postgres: Postgres) -> None:
    async with postgres.database() as url:
        await tell(url, 'CREATE SCHEMA "History"')
        names = SchemaNames(owner="History")
        async with opened(url, StoreOptions(auto_migrate=True, schema=names)) as both:
            stage = Stage(both)
            turn = stage.turn(await stage.new_conversation())
            await stage.store.commit_turn(stage.access, turn)
            assert await stage.listed(turn.response.conversation_id) == list(turn.links)
            assert (await stage.store.figures(timeout_s=30)).responses == 1
        asked = "SELECT count(*) FROM pg_tables WHERE schemaname = 'History'"
        assert await tell(url, asked) == [(8,)]


async def test_the_server_knows_who_is_connected(url: str) -> None:
    async with stage_at(url, StoreOptions(application_name="smg-node/one")) as stage:
        await stage.store.ping(timeout_s=5)
        asked = "SELECT DISTINCT application_name FROM pg_stat_activity"
        assert ("smg-node/one",) in await tell(url, asked)


@pytest.mark.parametrize(("pooler", "prepared"), [("", True), ("?pgbouncer=true", False)])
async def test_nothing_is_prepared_through_a_pooler(
    url: str, pooler: str, *, prepared: bool
) -> None:
    engine = postgresql_engine(parse_store_url(url + pooler), StoreOptions())
    async with engine.connect() as connection:
        for _ in range(3):
            await connection.execute(text("SELECT count(*) FROM responses"))
        found = await connection.execute(text("SELECT count(*) FROM pg_prepared_statements"))
        assert bool(found.scalar_one()) is prepared
    await engine.dispose()
    async with stage_at(url) as stage, opened(url + pooler, StoreOptions()) as both:
        turn = stage.turn(await stage.new_conversation())
        await both.store.commit_turn(stage.access, turn)
        assert await stage.listed(turn.response.conversation_id) == list(turn.links)


async def test_a_document_that_is_no_json_fails_alone(url: str) -> None:
    async with stage_at(url) as stage:
        good = [stage.turn(items=0) for _ in range(3)]
        bad = stage.turn(items=0)
        bad = structs.replace(bad, response=structs.replace(bad.response, input=b"[1, 2"))
        answers = await asyncio.gather(
            *(stage.store.commit_turn(stage.access, each) for each in [*good[:2], bad, good[2]]),
            return_exceptions=True,
        )
        kinds = [getattr(each, "kind", None) for each in answers]
        assert kinds == [None, None, StoreErrorKind.CORRUPT, None]
        for turn in good:
            assert await stage.store.get_response(stage.access, turn.response.id) is not None
