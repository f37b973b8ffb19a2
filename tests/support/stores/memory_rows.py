"""A store in memory of which one sees the inside: are its sums right?"""

from smg_storage.memory.row_store import RowStore
from smg_storage.memory.rows import Kind
from smg_storage.memory.store import MemoryStore
from smg_storage.memory.write_equality import cost
from smg_storage.options import Bounds
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import Stage


def stage_with(bounds: Bounds) -> Stage:
    """Return a stage on a store with these bounds."""
    clock = Clock()
    store = MemoryStore(bounds, clock)
    return Stage(Opened(store, store, clock))


def shelf_of(stage: Stage) -> RowStore:
    """Return the rows of a stage's store."""
    store = stage.store
    assert isinstance(store, MemoryStore)
    return store._shelf


def assert_sound(shelf: RowStore) -> None:
    """Assert that the sums are those of the rows, and that nothing refers to what is not there."""
    tables = shelf._tables
    rows = [(kind, key, row) for kind, table in tables.items() for key, row in table.items()]
    assert shelf.bytes == sum(row.bytes for _, _, row in rows)
    for thread_key, thread in shelf._threads.items():
        own = [(kind, key) for kind, key, row in rows if row.thread == thread_key]
        assert sorted(thread.members, key=repr) == sorted(own, key=repr)
        assert thread.bytes == sum(tables[kind][key].bytes for kind, key in own)
        assert thread.items == sum(kind in (Kind.ITEM, Kind.LOCATION) for kind, _ in own)
        assert thread.responses == sum(kind is Kind.RESPONSE for kind, _ in own)
    assert {row.thread for _, _, row in rows} <= shelf._threads.keys()
    assert shelf._items == len(shelf.items) + len(shelf.locations)
    assert shelf._responses == len(shelf.responses)
    for tenant, tally in shelf.tenants.items():
        own_rows = [row for _, key, row in rows if key[0] == tenant]
        assert (tally.rows, tally.bytes) == (len(own_rows), sum(row.bytes for row in own_rows))
        assert tally.conversations == sum(key[0] == tenant for key in shelf.conversations)
        assert tally.items == sum(key[0] == tenant for key in shelf.items)
        assert tally.responses == sum(key[0] == tenant for key in shelf.responses)
    assert {key[0] for _, key, _ in rows} == shelf.tenants.keys()
    endings = [(row.expires_us, kind.value, key) for kind, key, row in rows if row.expires_us]
    assert list(shelf._endings.ascending()) == sorted(endings)
    for key, row in shelf.conversations.items():
        assert row.bytes == cost(row.record.metadata)
        assert len(row.positions) == len(row.item_at) == len(row.position_of)
        for item_id in row.position_of:
            assert key[1] in shelf.items[key[0], item_id].conversations
    for key, item in shelf.items.items():
        assert item.bytes == cost(item.record.document)
        for conversation_id in item.conversations:
            assert key[1] in shelf.conversations[key[0], conversation_id].position_of
        homes = [shelf.conversations[key[0], each].thread for each in item.conversations]
        assert item.thread in homes or not homes
    for key, location in shelf.locations.items():
        assert key[1] in shelf.responses[key[0], location.record.response_id].located
    listed = [
        (person, entry)
        for person, entries in shelf.persons.items()
        for entry in entries.ascending()
    ]
    expected = [
        ((key[0], row.record.safety_identifier), (row.record.created_us, key[1]))
        for key, row in shelf.responses.items()
        if row.record.safety_identifier
    ]
    assert sorted(listed) == sorted(expected)
    for kept in shelf.responses.values():
        assert kept.bytes == cost(kept.record.input, kept.record.response)
    running = [
        (row.record.lease_until_us, *key)
        for key, row in shelf.responses.items()
        if row.record.background and not row.record.status.is_final
    ]
    assert list(shelf.runs.ascending()) == sorted(running)
