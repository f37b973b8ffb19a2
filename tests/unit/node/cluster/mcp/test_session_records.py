"""Records of sessions in rows that all nodes hold: sealed, bounded, and read by whoever has the key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.shared import SessionRow, StateError
from smg_node.mcp.session.session_record import SessionRecord
from support.mcp.session_world import SessionWorld

RECORD = SessionRecord("0f3c9a", "2025-11-25", "a.7f3c", lists=True, changes=3)
PARTS = ("server", "credential", "acme", "thread t-1", False)


@pytest.mark.parametrize("key", [b"", bytes(range(36))])
def test_what_one_process_writes_another_reads(key: bytes) -> None:
    world = SessionWorld(key)
    a, b = world.records("a"), world.records("b")
    named = a.key(PARTS)
    assert named == b.key(PARTS)
    assert a.put(named, RECORD, 300_000)
    kept = b.get(named)
    assert kept is not None
    assert kept.record == RECORD
    assert 0 < kept.until_ms - world.now_ms() <= 300_000
    b.remove(named)
    assert a.get(named) is None


def test_a_key_says_nothing_and_differs_with_each_part_and_with_the_clusters_key() -> None:
    world = SessionWorld()
    records = world.records("a")
    keys = {records.key((*PARTS[:at], "other", *PARTS[at + 1 :])) for at in range(4)}
    keys |= {records.key(PARTS), SessionWorld(bytes(36)).records("a").key(PARTS)}
    assert len(keys) == 6
    assert {len(key) for key in keys} == {32}


def test_a_session_with_a_long_id_does_not_travel() -> None:
    world = SessionWorld()
    records = world.records("a")
    assert records.put("k", SessionRecord("x" * 160, "2025-11-25", "a.7f3c"), 1_000)
    assert not records.put("k", SessionRecord("x" * 400, "2025-11-25", "a.7f3c"), 1_000)


def test_without_the_clusters_keys_nothing_is_shared() -> None:
    class Keyless(SessionWorld):
        @property
        def carried(self) -> "Keyless":  # type: ignore[override]  # one that has no keys yet
            return self

        def seal(self, secret: str) -> bytes:
            raise StateError("closed", "no keys yet")

        def digest(self, text: bytes, size_bytes: int) -> bytes:
            raise StateError("closed", "no keys yet")

    records = Keyless().records("a")
    key = records.key(PARTS)
    assert (key, records.get(key), records.put(key, RECORD, 1_000)) == ("", None, False)
    records.remove(key)
    assert not records.put("k", RECORD, 1_000)


@given(st.binary(max_size=200))
def test_no_row_that_is_none_is_a_record(content: bytes) -> None:
    for key in (b"", bytes(range(36))):
        world = SessionWorld(key)
        world.rows["k"] = SessionRow("k", content, world.now_ms() + 10_000, 10_000)
        assert world.records("a").get("k") is None


@given(st.recursive(st.none() | st.text() | st.integers(), lambda part: st.lists(part)))
def test_no_sealed_text_that_is_none_is_a_record(value: object) -> None:
    import msgspec

    world = SessionWorld()
    content = world.carried.seal(msgspec.json.encode(value).decode())
    world.rows["k"] = SessionRow("k", content, world.now_ms() + 10_000, 10_000)
    found = world.records("a").get("k")
    assert found is None or isinstance(found.record.id, str)


def test_the_node_of_a_process_is_what_lives() -> None:
    world = SessionWorld()
    records = world.records("a.b")
    assert not records.has_others()
    assert world.records("a.b", several=True).has_others()
    world.names.append("c")
    assert records.has_others()
    assert records.lives("a.b.9f")
    assert not records.lives("a.9f")
