"""What a newer version wrote about workers is kept, passed on, left alone, and reported."""

import msgspec
import pytest

from smg_mesh.state.unknown_versions import Unreadable
from smg_mesh.state.workers.worker_registry import WorkerRegistry
from support.state.worker_registries import Nodes, W, spec_at


@pytest.fixture
def nodes() -> Nodes:
    return Nodes("a", "b")


def reports(registry: WorkerRegistry) -> list[tuple[str, str, str]]:
    return [(one.key, one.reason, one.detail) for one in registry.unreadable()]


def newer(**more: object) -> bytes:
    spec = {"url": spec_at().url, "priority": 7, "colour": "red"}
    return msgspec.msgpack.encode({"spec": spec, "by": "b", "since": 5} | more)


@pytest.mark.parametrize(
    "key",
    [
        "/",
        "/api",
        f"{W}/",
        f"{W}/consul",
        f"{W}/static",
        f"{W}/static@",
        f"{W}/static@A B",
        f"{W}/api/x",
        f"{W}/api@a",
        f"{W}/patch@a",
        f"{W} /api",
        "ü/api",
        "x" * 200 + "/api",
    ],
)
def test_keys_of_no_known_kind_are_left_alone_and_reported(nodes: Nodes, key: str) -> None:
    nodes.world["b"].put(key, newer())
    nodes.tidy()
    assert reports(nodes["a"]) == [(key, "key", "")]
    assert nodes.listed("a") == {}
    assert nodes.world["a"].get(key) is not None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xc1",
        b"\x90",
        b"text",
        b"\x80",
        b"\x91" * 5000 + b"\x90",
        msgspec.msgpack.encode(5),
        msgspec.msgpack.encode({1: 2}),
        msgspec.msgpack.encode({"spec": []}),
        newer()[:-3],
        newer(by=5),
        newer(withheld="yes"),
        newer(spec={}),
        newer(spec={"url": ""}),
        newer(spec={"url": "u", "priority": "x"}),
        newer(spec={"url": "u", "sealed_key": "text"}),
        newer(spec={"url": "u", "cost": float("nan")}),
    ],
)
def test_values_that_cannot_be_read_do_not_count_and_are_reported(
    nodes: Nodes, value: bytes
) -> None:
    nodes.world["b"].put(f"{W}/api", value)
    assert nodes.listed("a") == {}
    [report] = nodes["a"].unreadable()
    assert (report.key, report.owner, report.reason) == (f"{W}/api", "b", "value")
    assert report.detail
    held = nodes.world["a"].get(f"{W}/api")
    assert held is not None
    assert held.value == value


def test_fields_that_are_not_known_are_left_alone_and_reported(nodes: Nodes) -> None:
    nodes.world["b"].put(f"{W}/api", newer())
    [record] = nodes["a"].records()
    assert record.spec == spec_at(priority=7)
    assert reports(nodes["a"]) == [(f"{W}/api", "fields", "since, colour")]


def test_another_source_counts_beside_one_that_cannot_be_read(nodes: Nodes) -> None:
    nodes.world["b"].put(f"{W}/api", b"?")
    nodes["a"].add(W, "static", spec_at())
    assert nodes.listed("b") == {W: ("static@a",)}
    assert len(nodes["b"].unreadable()) == 1


def test_a_patch_and_a_drain_that_cannot_be_read_change_nothing(nodes: Nodes) -> None:
    before = nodes["a"].add(W, "api", spec_at())
    nodes.world["b"].put(f"{W}/patch", msgspec.msgpack.encode({"spec": {"cost": "dear"}}))
    nodes.world["b"].put(f"{W}/drain", msgspec.msgpack.encode({"on": "maybe"}))
    assert nodes["a"].get(W) == before
    assert [one.reason for one in nodes["a"].unreadable()] == ["value", "value"]


def test_a_report_ends_with_its_cause(nodes: Nodes) -> None:
    nodes.world["b"].put(f"{W}/api", b"?")
    nodes.world["b"].put("what is this", b"?")
    assert len(nodes["a"].unreadable()) == 2
    nodes["a"].add(W, "api", spec_at())
    nodes.world["b"].remove("what is this")
    assert nodes["a"].unreadable() == nodes["b"].unreadable() == []


def test_what_is_not_known_survives_changes_of_an_older_version(nodes: Nodes) -> None:
    nodes.world["b"].put(f"{W}/api", newer())
    nodes.world["b"].put(f"{W}/patch", msgspec.msgpack.encode({"spec": {"warmth": 3}, "v": 2}))
    nodes.world["b"].put(f"{W}/drain", msgspec.msgpack.encode({"on": True, "until": 99}))
    nodes["a"].change(W, priority=8)
    nodes["a"].drain(W, on=False)
    nodes["a"].add(W, "api", spec_at(cost=2.0))

    def value(part: str) -> object:
        held = nodes.world["b"].get(f"{W}/{part}")
        assert held is not None
        assert held.value is not None
        return msgspec.msgpack.decode(held.value)

    assert value("patch") == {"spec": {"warmth": 3, "priority": 8}, "v": 2, "by": "a"}
    assert value("drain") == {"on": False, "until": 99, "by": "a"}
    assert value("api") == {
        "spec": {"colour": "red", "url": spec_at().url, "cost": 2.0},
        "since": 5,
        "by": "a",
    }


def test_what_is_not_known_does_not_survive_a_removal(nodes: Nodes) -> None:
    nodes.world["b"].put(f"{W}/api", newer())
    nodes["a"].remove(W)
    nodes["a"].add(W, "api", spec_at())
    assert nodes["b"].unreadable() == []


def test_a_value_at_an_identity_keeps_the_removal_it_replaced(nodes: Nodes) -> None:
    nodes["a"].add(W, "api", spec_at())
    nodes["a"].remove(W)
    nodes.world["b"].put(W, b"from the future")
    assert nodes.listed("a") == nodes.listed("b") == {}
    assert WorkerRegistry(nodes.world["a"], "a").records() == ()
    assert reports(nodes["a"]) == [(W, "key", "")]
    nodes["a"].add(W, "api", spec_at())
    assert nodes.listed("b") == {W: ("api",)}


def test_a_value_at_an_identity_alone_removes_nothing(nodes: Nodes) -> None:
    nodes["a"].add(W, "api", spec_at())
    nodes.world["b"].put(W, b"from the future")
    assert nodes.listed("a") == {W: ("api",)}


def test_reports_name_owner_and_version(nodes: Nodes) -> None:
    held = nodes.world["b"].put("strange", b"x")
    assert nodes["a"].unreadable() == [Unreadable("strange", "b", held.version, "key")]


def test_keys_sealed_anew_change_nothing_else(nodes: Nodes) -> None:
    nodes.world["b"].put(f"{W}/api", newer(spec={"url": "u", "sealed_key": b"1:k", "hue": 1}))
    nodes["b"].list_own("static", {"w-2": spec_at(2, sealed_key=b"1:l"), "w-3": spec_at(3)})
    nodes["b"].change(W, sealed_key=b"1:m")
    nodes["b"].change("w-3", sealed_key=b"2:n")
    nodes["b"].remove("w-2")
    asked: list[str] = []

    def renew(sealed: bytes) -> bytes | None:
        return b"2:" + sealed[2:] if sealed.startswith(b"1:") else None

    def mine(owner: str) -> bool:
        asked.append(owner)
        return owner == "b"

    assert sorted(nodes["a"].sealed()) == [b"1:k", b"1:l", b"1:m", b"2:n"]
    assert nodes["a"].reseal(renew, lambda owner: owner == "a") == 0
    assert nodes["b"].reseal(renew, mine, writes_max=2) == 2
    assert nodes["b"].reseal(renew, mine, writes_max=2) == 1
    assert nodes["b"].reseal(renew, mine) == 0
    assert sorted(nodes["a"].sealed()) == [b"2:k", b"2:l", b"2:m", b"2:n"]
    assert set(asked) == {"b"}
    assert list(nodes.listed("a")) == [W, "w-3"]
    held = nodes.world["a"].get(f"{W}/api")
    assert held is not None
    assert b"hue" in (held.value or b"")
    assert nodes["b"].list_own(
        "static", {"w-2": spec_at(2, sealed_key=b"2:l"), "w-3": spec_at(3)}
    ).held_back == ("w-2",)
