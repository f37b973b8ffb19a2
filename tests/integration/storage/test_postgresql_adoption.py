"""What SMG (Shepherd Model Gateway) kept in PostgreSQL, taken over and given back."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_storage.errors import OldTablesError, StoreError
from smg_storage.options import SchemaNames, StoreOptions, TableNames
from smg_storage.records import Access, PageAsk, Status
from smg_storage.sql.open import open_store
from smg_storage.sql.schema.tables import Tables
from smg_storage.store import HistoryStore
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock
from support.stores.migrations import differences
from support.stores.postgres_schema import database, migrations, shape, with_engine
from support.stores.postgres_server import Postgres
from support.stores.smg_tables import BEGAN, SmgWriter

pytestmark = pytest.mark.integration

SMGS = re.compile(r"remove_(table|index).*'?(smg_v3_|_schema_versions)")


def text(said: str) -> list[object]:
    return [{"type": "input_text", "text": said}]


async def write_history(smg: SmgWriter) -> None:
    await smg.make_tables()
    await smg.conversation("conv_a", {"topic": "sea"})
    await smg.conversation("conv_b")
    for place in range(450):
        await smg.item(f"msg_{place:04}", text(str(place)))
        await smg.link("conv_a", f"msg_{place:04}", 1_000 - place)
    await smg.item("fc_1", {"call_id": "c", "name": "f", "arguments": "{}"}, kind="function_call")
    await smg.link("conv_b", "fc_1", 0)
    await smg.link("conv_b", "msg_0000", 0)
    await smg.link("conv_gone", "msg_0001", 0)
    await smg.response("resp_1", '{"id": "resp_1",  "status":"completed","output":[],"n":1e2}')
    await smg.response(
        "resp_2",
        json.dumps({"id": "resp_2", "output": [{"id": "msg_out", "type": "message"}]}),
        asked='[{"type":"message","role":"user","content":"hi"}]',
        previous="resp_1",
    )
    await smg.response("resp_3", '{"id":"resp_3","status":"in_progress"}', previous="resp_2")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[HistoryStore]:
    store = open_store(parse_store_url(url), StoreOptions(), Clock())
    try:
        await store.start()
        yield store
    finally:
        await store.close()


async def test_conversations_go_on_where_they_were(postgres: Postgres) -> None:
    access = Access()
    async with database(postgres) as (url, connection):
        await write_history(SmgWriter(connection))
        await migrations(url).upgrade()
        async with opened(url) as store:
            talk = await store.get_conversation(access, "conv_a")
            newest = await store.newest_items(access, "conv_a", items_max=3, bytes_max=1 << 20)
            other = await store.newest_items(access, "conv_b", items_max=9, bytes_max=1 << 20)
            foreign = await store.get_conversation(Access(tenant="t"), "conv_a")
            appended = await store.link_items(access, "conv_a", ["fc_1"], now_us=1)
            left = []
            for conversation in ("conv_b", "conv_a"):
                await store.delete_item(access, conversation, "msg_0000")
                left.append(await store.get_item(access, "msg_0000") is not None)
    assert talk is not None
    assert newest is not None
    assert other is not None
    assert (talk.metadata, talk.created_us) == (
        b'{"topic": "sea"}',
        int(BEGAN.timestamp() * 1_000_000),
    )
    # The one that was linked last is the newest, whatever its name.
    assert [json.loads(item.document)["content"][0]["text"] for item in newest.items] == [
        *("0", "1", "2")
    ]
    assert [item.id for item in other.items] == ["msg_0000", "fc_1"]
    assert json.loads(other.items[1].document) == {
        "id": "fc_1",
        "type": "function_call",
        "role": "user",
        "status": "completed",
        "call_id": "c",
        "name": "f",
        "arguments": "{}",
    }
    assert foreign is None
    assert list(appended) == [451]
    # An item is there for as long as a conversation has it.
    assert left == [True, False]


async def test_responses_go_on_where_they_were(postgres: Postgres) -> None:
    access = Access()
    async with database(postgres) as (url, connection):
        await write_history(SmgWriter(connection))
        with pytest.raises(StoreError, match="smg-admin db migrate"):
            async with opened(url):
                pass
        moved = await migrations(url).upgrade()
        found = await with_engine(url, lambda at: differences(at, Tables()))
        async with opened(url) as store:
            chain = await store.get_response_chain(access, "resp_3", items_max=9, bytes_max=1 << 20)
            located = await store.find_items(access, ["msg_out", "msg_0007"])
            of_one = await store.list_identifier_responses(access, "somebody", PageAsk())
    assert moved.steps[0].startswith("0001: ")
    assert [each for each in found if not SMGS.search(str(each))] == []
    assert [each.id for each in chain.responses] == ["resp_3", "resp_2", "resp_1"]
    assert [each.depth for each in chain.responses] == [2, 1, 0]
    assert [each.status for each in chain.responses] == [
        *(Status.FAILED, Status.COMPLETED, Status.COMPLETED)
    ]
    assert chain.responses[2].response == (
        b'{"id": "resp_1",  "status":"completed","output":[],"n":1e2}'
    )
    (asked,) = json.loads(chain.responses[1].input)
    assert asked["id"].startswith("msg_")
    assert located.keys() == {"msg_out", "msg_0007"}
    assert len(of_one.responses) == 3


async def test_tables_under_other_names_are_taken_over_as_well(postgres: Postgres) -> None:
    theirs = SchemaNames(
        owner="Chat",
        tables={
            "conversations": TableNames(table="Talks", columns={"id": "Talk$Id"}),
            "responses": TableNames(
                extra_columns={"region": {"type": "string", "default": "eu"}},
                skip_columns=("depth",),
            ),
        },
    )
    async with database(postgres) as (url, connection):
        await connection.execute('CREATE SCHEMA "Chat"')
        await connection.execute('SET search_path TO "Chat"')
        await write_history(SmgWriter(connection))
        await connection.execute('ALTER TABLE conversations RENAME TO "Talks"')
        await connection.execute('ALTER TABLE "Talks" RENAME COLUMN id TO "Talk$Id"')
        await connection.execute("ALTER TABLE responses ADD COLUMN region VARCHAR(9) DEFAULT 'us'")
        await connection.execute("ALTER TABLE conversation_items DROP COLUMN created_at")
        await migrations(url, theirs).upgrade()
        store = open_store(parse_store_url(url), StoreOptions(schema=theirs), Clock())
        await store.start()
        talk = await store.get_conversation(Access(), "conv_a")
        items = await store.newest_items(Access(), "conv_a", items_max=999, bytes_max=1 << 20)
        await store.close()
        regions = await connection.fetch("SELECT DISTINCT region FROM responses")
        await migrations(url, theirs).downgrade("base")
        kept = await connection.fetchval('SELECT count(*) FROM "Talks"')
    assert talk is not None
    assert items is not None
    assert len(items.items) == 450
    # What hooks wrote there is theirs to bring along; the column is there with its default.
    assert [row[0] for row in regions] == ["eu"]
    assert kept == 2


async def test_a_sequence_of_a_thousand_responses_has_its_depths(postgres: Postgres) -> None:
    async with database(postgres) as (url, connection):
        smg = SmgWriter(connection)
        await smg.make_tables()
        await connection.execute(
            "INSERT INTO responses (id, previous_response_id, raw_response)"
            " SELECT 'r' || n, CASE WHEN n > 1 THEN 'r' || (n - 1) END, '{}'"
            " FROM generate_series(1, 1000) n"
        )
        await smg.response("round_1", "{}", previous="round_2")
        await smg.response("round_2", "{}", previous="round_1")
        await smg.response("orphan", "{}", previous="gone")
        await migrations(url).upgrade()
        depths = dict(await connection.fetch("SELECT id, depth FROM responses"))
    assert [depths[f"r{place}"] for place in range(1, 1_001)] == list(range(1_000))
    assert (depths["round_1"], depths["round_2"], depths["orphan"]) == (0, 0, 0)


async def test_going_back_gives_smg_its_tables_as_they_were(postgres: Postgres) -> None:
    rows = "SELECT id, input::text, raw_response::text FROM responses ORDER BY id"
    async with database(postgres) as (url, connection):
        await write_history(SmgWriter(connection))
        before, told = await shape(connection, "public"), await connection.fetch(rows)
        await migrations(url).upgrade()
        await migrations(url).downgrade("base")
        await connection.execute("DROP TABLE smg_schema_version")
        after, still = await shape(connection, "public"), await connection.fetch(rows)
        again = await migrations(url).upgrade()
    assert after == before
    assert still == told
    assert again.reached == "0001"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE responses ADD COLUMN output JSON", "before version 3"),
        ("ALTER TABLE conversations ADD COLUMN tenant TEXT", "a table conversations already"),
        ("CREATE TABLE response_events (id int)", "a table response_events already"),
        ("CREATE TABLE smg_v3_responses (id int)", "smg_v3_responses already"),
    ],
)
async def test_tables_that_are_not_smgs_are_left_alone(
    postgres: Postgres, change: str, said: str
) -> None:
    async with database(postgres) as (url, connection):
        smg = SmgWriter(connection)
        await smg.make_tables()
        await connection.execute(change)
        before = await shape(connection, "public")
        with pytest.raises(OldTablesError, match=said):
            await migrations(url).upgrade()
        after = await shape(connection, "public")
    assert [row for row in after[0] if row[0] != "smg_schema_version"] == before[0]
    assert after[1:] == before[1:]
