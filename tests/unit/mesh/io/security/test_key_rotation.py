"""Changing the keyring of a cluster: the rules, without a network."""

import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from smg_mesh.io.security.key_rotation import Operation, Peer, Rotation
from smg_mesh.io.security.keyring import Keyring, KeyringError, KeyringUnsavedError
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.io.security.rotation_report import KeyringReport, RotationError
from smg_mesh.io.security.versioned_ring import VersionedRing
from smg_mesh.io.streams import AskError
from smg_mesh.swim.messages import Address
from support.mesh.mesh_streams import key


def finger(number: int) -> str:
    return RingKey(key(number)).fingerprint


class Cluster:
    """Nodes that ask each other directly, as far as they are not cut off."""

    def __init__(self, *rings: Sequence[int]) -> None:
        self.nodes: dict[str, Rotation] = {}
        self.rings: dict[str, VersionedRing] = {}
        self.away: set[str] = set()
        self.changes: list[tuple[str, str]] = []
        for name, numbers in zip("abcdefgh", rings, strict=False):
            self.add(name, Keyring([RingKey(key(number)) for number in numbers], "test"))

    def add(self, name: str, keyring: Keyring, folder: Path | None = None) -> None:
        async def ask(other: str, _address: Address, payload: bytes) -> bytes:
            if other in self.away or name in self.away:
                raise AskError("unreachable", f"{other} is away")
            return await self.nodes[other].answer(payload, name)

        self.rings[name] = VersionedRing(keyring, folder)
        self.nodes[name] = Rotation(
            self.rings[name],
            me=name,
            ask=ask,
            changed=lambda why: self.changes.append((name, why)),
        )

    def others(self, name: str) -> list[Peer]:
        return [(other, Address("10.0.0.1", 1)) for other in self.nodes if other != name]

    async def operate(
        self, name: str, operation: Operation, what: str = "", *, force: bool = False
    ) -> KeyringReport:
        return await self.nodes[name].operate(operation, what, self.others(name), force=force)

    async def meet(self, opener: str, other: str) -> None:
        """What follows an exchange."""
        version = self.nodes[other].version
        await self.nodes[opener].level(other, Address("10.0.0.1", 1), version)

    def held(self) -> list[list[str]]:
        """Return what everybody holds: the primary first, the others sorted."""
        rings = [self.rings[name].fingerprints() for name in sorted(self.rings)]
        return [[ring.primary, *sorted(ring.all[1:])] for ring in rings]


async def test_a_whole_rotation_leaves_everybody_with_the_new_key_only() -> None:
    cluster = Cluster([1], [1], [1])
    report = await cluster.operate("a", "install", key(2).hex())
    assert report.complete
    assert report.keys == {finger(1): ("a", "b", "c"), finger(2): ("a", "b", "c")}
    assert (report.primary, report.version) == (finger(1), 1)
    report = await cluster.operate("b", "use", finger(2))
    assert report.complete
    assert report.primary == finger(2)
    report = await cluster.operate("c", "remove", finger(1))
    assert report.members == {"a": "ok", "b": "ok", "c": "ok"}
    assert cluster.held() == [[finger(2)]] * 3
    assert {ring.version for ring in cluster.rings.values()} == {3}
    assert len(cluster.changes) == 9


async def test_a_list_changes_nothing_and_tells_who_is_away() -> None:
    cluster = Cluster([1, 2], [2, 1], [1])
    cluster.away = {"c"}
    report = await cluster.operate("a", "list")
    assert report.keys == {finger(1): ("a", "b"), finger(2): ("a", "b")}
    assert report.members == {
        "a": "ok",
        "b": "holds another ring of the same version",
        "c": "unreachable: c is away",
    }
    assert not report.complete
    assert cluster.changes == []


async def test_a_step_again_is_no_step() -> None:
    cluster = Cluster([1], [1])
    for _ in range(3):
        assert (await cluster.operate("a", "install", key(2).hex())).complete
    assert cluster.rings["b"].version == 1
    for name in ("a", "b"):
        assert (await cluster.operate(name, "use", finger(2))).complete
        assert (await cluster.operate(name, "remove", finger(1))).complete
    assert (await cluster.operate("a", "remove", finger(1))).complete
    assert cluster.rings["b"].version == 3


# ── Who is away ──────────────────────────────────────────────────────────────


async def test_a_key_is_installed_also_where_somebody_is_away_and_learnt_later() -> None:
    cluster = Cluster([1], [1], [1])
    cluster.away = {"c"}
    report = await cluster.operate("a", "install", key(2).hex())
    assert report.members == {"a": "ok", "b": "ok", "c": "unreachable: c is away"}
    cluster.away = set()
    await cluster.meet("c", "b")
    assert cluster.held()[2] == cluster.held()[0]
    assert cluster.changes[-1] == ("c", "version 1 learnt from b")


async def test_who_is_asked_brings_the_one_that_is_behind_level_too() -> None:
    cluster = Cluster([1], [1], [1])
    cluster.away = {"c"}
    await cluster.operate("a", "install", key(2).hex())
    cluster.away = set()
    await cluster.meet("a", "c")
    assert cluster.held()[2] == cluster.held()[0]
    assert cluster.changes[-1] == ("c", "told by a")
    await cluster.meet("a", "c")
    await cluster.meet("c", "a")
    assert len(cluster.changes) == 3, "once level, nothing is asked"


@pytest.mark.parametrize("operation", ["use", "remove"])
async def test_a_step_that_cuts_is_refused_while_somebody_does_not_acknowledge(
    operation: Operation,
) -> None:
    cluster = Cluster([1, 2], [1, 2], [1, 2])
    cluster.away = {"b"}
    with pytest.raises(RotationError, match=r"b does not acknowledge \(unreachable") as raised:
        await cluster.operate("a", operation, finger(2))
    assert raised.value.report is not None
    assert raised.value.report.members["b"] == "unreachable: b is away"
    assert cluster.changes == []
    report = await cluster.operate("a", operation, finger(2), force=True)
    assert report.members["c"] == "ok"
    assert not report.complete


async def test_a_key_is_not_used_before_all_have_it() -> None:
    cluster = Cluster([1], [1], [1])
    cluster.away = {"c"}
    await cluster.operate("a", "install", key(2).hex())
    cluster.away = set()
    with pytest.raises(RotationError, match=f"c has no key {finger(2)}: install it again"):
        await cluster.operate("b", "use", finger(2))
    assert (await cluster.operate("b", "install", key(2).hex())).complete
    assert (await cluster.operate("b", "use", finger(2))).complete


async def test_a_key_is_not_removed_while_somebody_seals_with_it() -> None:
    cluster = Cluster([1, 2], [1, 2], [1, 2])
    cluster.away = {"c"}
    await cluster.operate("a", "use", finger(2), force=True)
    cluster.away = set()
    with pytest.raises(RotationError, match=f"c seals with {finger(1)} still"):
        await cluster.operate("a", "remove", finger(1))
    assert cluster.held()[0] == [finger(2), finger(1)]


async def test_the_key_in_use_is_never_removed() -> None:
    cluster = Cluster([1, 2], [1, 2])
    for force in (False, True):
        with pytest.raises(RotationError, match="use another key first"):
            await cluster.operate("a", "remove", finger(1), force=force)
    assert cluster.changes == []


async def test_a_sleeper_comes_back_through_the_old_key() -> None:
    cluster = Cluster([1], [1], [1])
    cluster.away = {"c"}
    await cluster.operate("a", "install", key(2).hex())
    await cluster.operate("a", "use", finger(2), force=True)
    cluster.away = set()
    await cluster.meet("c", "a")
    assert cluster.held() == [[finger(2), finger(1)]] * 3
    assert (await cluster.operate("a", "remove", finger(1))).complete


async def test_who_is_told_first_catches_up_itself() -> None:
    """A step from a ring of the past would undo what others have done since."""
    cluster = Cluster([1], [1], [1])
    cluster.away = {"c"}
    await cluster.operate("a", "install", key(2).hex())
    cluster.away = set()
    assert (await cluster.operate("c", "install", key(3).hex())).complete
    assert cluster.held() == [[finger(1), *sorted([finger(2), finger(3)])]] * 3


async def test_a_newer_ring_that_cannot_be_had_stops_the_step() -> None:
    cluster = Cluster([1], [1])
    await cluster.operate("a", "install", key(2).hex())
    cluster.add("c", Keyring([RingKey(key(1))], "test"))
    rotation = cluster.nodes["c"]

    async def no_fetch(name: str, _address: Address, payload: bytes) -> bytes:
        if b"fetch" in payload:
            raise AskError("timeout", "slow")
        return await cluster.nodes[name].answer(payload, "c")

    vars(rotation)["_ask"] = no_fetch
    with pytest.raises(RotationError, match="has a newer keyring, which cannot be had"):
        await cluster.operate("c", "install", key(3).hex())
    assert cluster.rings["c"].version == 0


# ── Rings that differ ────────────────────────────────────────────────────────


async def test_rings_that_differ_under_one_version_are_settled_by_force_only() -> None:
    cluster = Cluster([1], [1, 3], [1])
    with pytest.raises(RotationError, match="b holds another ring of the same version"):
        await cluster.operate("a", "install", key(2).hex())
    report = await cluster.operate("a", "install", key(2).hex(), force=True)
    assert report.complete
    assert cluster.held() == [[finger(1), finger(2)]] * 3


async def test_key_files_that_differ_are_not_levelled_by_meeting() -> None:
    cluster = Cluster([1], [2, 1])
    await cluster.meet("a", "b")
    await cluster.meet("b", "a")
    assert cluster.held() == [[finger(1)], [finger(2), finger(1)]]


async def test_an_older_ring_is_not_taken() -> None:
    cluster = Cluster([1], [1])
    await cluster.operate("a", "install", key(2).hex())
    with pytest.raises(KeyringError, match="version 1 of the keyring already"):
        cluster.rings["a"].adopt(1, [key(1)])
    with pytest.raises(KeyringError, match="version 1 of the keyring already"):
        cluster.rings["a"].adopt(0, [key(1), key(2)])
    assert not cluster.rings["a"].adopt(1, [key(1), key(2)])


@pytest.mark.parametrize(
    ("operation", "what", "words"),
    [
        ("install", "no key!", "neither base64 nor hexadecimal"),
        ("install", "", "32 bytes, not 0"),
        ("use", "deadbeef", "no key 'deadbeef': install it first"),
        ("use", "", "no key ''"),
    ],
)
async def test_nonsense_is_refused_with_words(operation: Operation, what: str, words: str) -> None:
    cluster = Cluster([1], [1])
    with pytest.raises(RotationError, match=words):
        await cluster.operate("a", operation, what, force=True)
    assert cluster.changes == []


async def test_a_ninth_key_is_refused() -> None:
    cluster = Cluster(range(1, 9), range(1, 9))
    with pytest.raises(RotationError, match="1 to 8 keys"):
        await cluster.operate("a", "install", key(9).hex())
    assert cluster.changes == []


async def test_one_change_at_a_time() -> None:
    cluster = Cluster([1], [1])
    rotation = cluster.nodes["a"]
    second: list[RotationError] = []

    async def ask(name: str, _address: Address, payload: bytes) -> bytes:
        with pytest.raises(RotationError, match="being changed already") as raised:
            await cluster.operate("a", "install", key(3).hex())
        second.append(raised.value)
        await rotation.level("b", Address("10.0.0.1", 1), 99)
        return await cluster.nodes[name].answer(payload, "a")

    vars(rotation)["_ask"] = ask
    await cluster.operate("a", "install", key(2).hex())
    assert len(second) == 2
    assert cluster.held() == [[finger(1), finger(2)]] * 2


# ── The answering side ───────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        msgspec.msgpack.encode({"type": "list", "more": [[]]})[:-1],
        msgspec.msgpack.encode({"type": "shout"}),
        msgspec.msgpack.encode({"type": "adopt", "version": -1, "keys": [key(1)]}),
        msgspec.msgpack.encode({"type": "adopt", "version": 1 << 63, "keys": [key(1)]}),
        msgspec.msgpack.encode({"type": "adopt", "version": 1, "keys": []}),
        msgspec.msgpack.encode({"type": "adopt", "version": 1, "keys": [b"short"]}),
        msgspec.msgpack.encode({"type": "adopt", "version": 1, "keys": [key(n) for n in range(9)]}),
        msgspec.msgpack.encode({"type": "adopt", "version": 1, "keys": [key(1), key(1)]}),
    ],
)
async def test_garbage_changes_nothing(payload: bytes) -> None:
    cluster = Cluster([1])
    with pytest.raises(AskError) as raised:
        await cluster.nodes["a"].answer(payload, "b")
    assert raised.value.code in ("wire", "refused")
    assert cluster.changes == []


async def test_keys_are_told_only_when_they_are_asked_for() -> None:
    cluster = Cluster([1])
    listed = await cluster.nodes["a"].answer(msgspec.msgpack.encode({"type": "list"}), "b")
    assert key(1) not in listed
    fetched = await cluster.nodes["a"].answer(msgspec.msgpack.encode({"type": "fetch"}), "b")
    assert key(1) in fetched


async def test_an_insecure_node_has_no_keyring_to_change() -> None:
    cluster = Cluster([1])
    cluster.add("p", Keyring.insecure("test"))
    with pytest.raises(AskError) as raised:
        await cluster.nodes["p"].answer(msgspec.msgpack.encode({"type": "fetch"}), "a")
    assert raised.value.code == "insecure"
    with pytest.raises(RotationError, match="insecure"):
        await cluster.operate("p", "list")
    await cluster.meet("p", "a")
    report = await cluster.operate("a", "list")
    assert report.members["p"].startswith("insecure")


async def test_a_peer_that_cannot_be_brought_level_is_a_word_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster([1], [1])
    cluster.away = {"b"}
    with caplog.at_level(logging.WARNING, "smg_mesh"):
        await cluster.nodes["a"].level("b", Address("10.0.0.1", 1), 7)
    assert "stay different: b is away" in caplog.text


# ── What is kept ─────────────────────────────────────────────────────────────


def test_the_version_survives_a_restart_with_the_ring(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(key(1).hex())
    file.chmod(0o600)
    data = tmp_path / "data"
    ring = VersionedRing(Keyring.load(file, data, "test"), data)
    ring.adopt(4, [key(2), key(1)])
    again = VersionedRing(Keyring.load(file, data, "test"), data)
    assert (again.version, again.keys()) == (4, (key(2), key(1)))
    file.write_text(key(3).hex())
    changed = VersionedRing(Keyring.load(file, data, "test"), data)
    assert (changed.version, changed.keys()) == (4, (key(3),)), "the operator's file wins"


@pytest.mark.parametrize("content", [b"", b"garbage", b"-1", b"9" * 30, b"\xff"])
def test_a_version_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keyring-version").write_bytes(content)
    assert VersionedRing(Keyring([RingKey(key(1))], "test"), tmp_path).version == 0


def test_a_disk_that_fails_leaves_a_step_that_can_be_made_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("in the way")
    ring = VersionedRing(Keyring([RingKey(key(1))], "test"), data)
    with pytest.raises(KeyringUnsavedError):
        ring.adopt(1, [key(2), key(1)])
    assert ring.version == 0
    data.unlink()
    assert ring.adopt(1, [key(2), key(1)])
    assert ring.keys() == (key(2), key(1))


@pytest.mark.parametrize("before", [[1], [1, 2], list(range(1, 9))])
@pytest.mark.parametrize(
    "after",
    [[1], [2, 1], [9], [9, 1], list(range(8, 0, -1)), [9, *range(2, 9)], list(range(9, 17))],
)
def test_any_ring_becomes_any_other(before: list[int], after: list[int]) -> None:
    ring = VersionedRing(Keyring([RingKey(key(number)) for number in before], "test"), None)
    ring.adopt(1, [key(number) for number in after])
    assert ring.keys()[0] == key(after[0])
    assert sorted(ring.keys()) == sorted(key(number) for number in after)
