"""Revisions: which era each belongs to, and which methods it has."""

from smg_node.mcp.revisions import (
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    REVISIONS,
    newest_modern,
    revision_named,
)


def test_the_newest_of_each_era() -> None:
    assert (NEWEST_HANDSHAKE.name, NEWEST_MODERN.name) == ("2025-11-25", "2026-07-28")
    assert [one.modern for one in REVISIONS] == [False, False, False, False, True]


def test_methods_belong_to_an_era() -> None:
    assert NEWEST_MODERN.holds("server/discover")
    assert not NEWEST_MODERN.holds("initialize")
    assert not NEWEST_HANDSHAKE.holds("server/discover")
    assert not NEWEST_HANDSHAKE.holds("tasks/get")
    assert all(one.holds("tools/call") for one in REVISIONS)


def test_the_newest_common_revision_is_looked_for_among_anything() -> None:
    assert newest_modern(["2025-11-25", "2026-07-28", "2099-01-01"]) is NEWEST_MODERN
    assert newest_modern(["2025-11-25", 3, None, {}]) is None
    assert revision_named("2025-03-26") is REVISIONS[1]
    assert revision_named(["x"]) is None
