"""What counts of definitions: the cluster's before a file's, and nothing is read twice that did not change."""

from dataclasses import dataclass, field
from typing import Any

from smg_node.cluster.mcp.definitions import effective, read_own

OWN = '{"servers": {"own": {"url": "https://own/"}}}'


@dataclass
class Value:
    key: str
    value: Any = field(default_factory=lambda: {"spec": {"url": "https://shared/"}})
    version: int = 1
    owner: str = "a"
    time_ms: int = 5


def nothing_opens(_sealed: bytes) -> None:
    return None


def test_what_did_not_change_is_not_read_again() -> None:
    values = [Value("mcp/servers/docs"), Value("mcp/servers/own"), Value("provider/x", value=5)]
    first = effective(read_own(OWN), values, nothing_opens)
    assert {name: one.source for name, one in first.servers.items()} == {
        "docs": "cluster",
        "own": "cluster",
    }
    again = effective(read_own(OWN), values, nothing_opens, first.servers)
    assert again == first
    assert again.servers["docs"] is first.servers["docs"]
    values[0].version = 2
    values[0].value = {"spec": {"url": "https://moved/"}}
    moved = effective(read_own(OWN), values[:1], nothing_opens, first.servers)
    assert moved.servers["docs"].spec.definition.url == "https://moved/"
    assert moved.servers["own"].source == "node"


def test_what_could_not_be_opened_is_tried_again() -> None:
    auth = {"kind": "bearer"}
    value = {"spec": {"url": "https://x/", "auth": auth}, "secrets": {"all": "c2VhbGVk"}}
    values = [Value("mcp/servers/docs", value)]
    locked = effective({}, values, nothing_opens)
    assert locked.servers["docs"].trouble
    assert locked.troubled
    opened = effective({}, values, lambda sealed: '{"token": "t"}', locked.servers)
    assert (opened.servers["docs"].trouble, opened.troubled) == ("", False)
    assert opened.servers["docs"].secrets == {"token": "t"}


def test_what_is_no_definition_is_reported_and_hides_nothing_of_the_nodes_own() -> None:
    values = [Value("mcp/servers/own", 7), Value("mcp/servers/bad", {"spec": {"command": "sh"}})]
    found = effective(read_own(OWN), values, nothing_opens)
    assert found.servers["own"].source == "node"
    assert set(found.unreadable) == {"mcp/servers/own", "mcp/servers/bad"}
    assert "command" in found.unreadable["mcp/servers/bad"]
