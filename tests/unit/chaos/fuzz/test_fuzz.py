import random
from collections.abc import Callable
from functools import partial

import pytest
from typer.testing import CliRunner

from smg_chaos.cli import app
from smg_chaos.fuzz import attack
from smg_chaos.fuzz import keyed_packets as inside
from smg_chaos.fuzz import keyless_packets as outside
from smg_chaos.fuzz.attack import Attack
from smg_chaos.fuzz.process_memory import resident_bytes
from smg_chaos.fuzz.report import BROKEN_SHOWN, Report
from smg_chaos.fuzz.small_cluster import Neighbours, lived_in
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.rejected import REASONS, Rejected
from smg_mesh.io.security.replay_window import Replays
from smg_mesh.swim import wire
from smg_mesh.swim.effects import Effect, Note
from smg_mesh.swim.messages import Address
from smg_mesh.swim.swim_core import Swim


def attack_of(packets: int, seed: int = 1) -> Report:
    return Attack(seed, packets, lambda part, done, packets: None).run()


def test_twenty_thousand_datagrams_break_no_promise() -> None:
    report = attack_of(20_000, seed=7)
    assert report.lines()[-1] == "seed 7: 20,000 datagrams, all promises kept"
    assert report.broken == []
    outcomes = report.outcomes
    assert {o for part, _, o in outcomes if part == "outside"} == set(REASONS) - {"sealed"}
    assert {o for part, _, o in outcomes if part == "outside, plain"} == set(REASONS) - {"plain"}
    assert {k for part, k, _ in outcomes if part == "outside"} == set(outside.MAKERS)
    assert {k for part, k, _ in outcomes if part == "inside"} == set(inside.MAKERS)
    assert {o for part, _, o in outcomes if part == "inside"} >= {"body", "form", "heard", "name"}
    assert {o for part, k, o in outcomes if k == "lies"} == {"heard"}


def test_the_same_seed_is_the_same_attack_and_another_is_not() -> None:
    first, again, other = attack_of(3000), attack_of(3000), attack_of(3000, seed=2)
    assert first.outcomes == again.outcomes
    assert first.facts["fingerprint"] == again.facts["fingerprint"] != other.facts["fingerprint"]


def test_a_ring_that_lets_replays_in_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replays, "is_fresh", lambda self, sender, boot, counter: True)
    report = attack_of(1000)
    assert report.broken_count > 10
    assert report.outcomes["outside", "replayed", "let in"] > 10
    assert "outside, number" in report.broken[0]


def test_a_ring_that_raises_something_else_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Keyring.open

    def fragile(self: Keyring, datagram: bytes) -> bytes:
        if len(datagram) < 20:
            raise IndexError("too short")
        return real(self, datagram)

    monkeypatch.setattr(Keyring, "open", fragile)
    report = attack_of(2000)
    assert "raised IndexError" in report.broken[0]


Hear = Callable[..., list[Effect]]


def _raises(real: Hear, core: Swim, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
    if sender == attack.SOURCE and len(data) % 7 == 0:
        raise ZeroDivisionError
    return real(core, data, sender, now_ms=now_ms)


def _leaks(real: Hear, core: Swim, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
    if sender == attack.SOURCE:
        core.set_document_digest(data[:8])
        core._voice.incarnation += 1
    return real(core, data, sender, now_ms=now_ms)


def _talks(real: Hear, core: Swim, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
    return [*real(core, data, sender, now_ms=now_ms), Note("more")]


@pytest.mark.parametrize(
    ("sabotage", "says"),
    [(_raises, "ZeroDivisionError"), (_leaks, "had effects"), (_talks, "had effects")],
)
def test_a_core_that_fails_or_changes_by_garbage_is_caught(
    sabotage: Callable[..., list[Effect]], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Swim.handle_datagram

    def hear(self: Swim, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        return sabotage(real, self, data, sender, now_ms=now_ms)

    monkeypatch.setattr(Swim, "handle_datagram", hear)
    report = attack_of(2000)
    assert report.broken_count > 0
    assert any(says in broken for broken in report.broken)


def test_a_victim_that_went_deaf_outside_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(self: Keyring, datagram: bytes) -> bytes:
        raise Rejected("tag")

    real = Attack._look_afterwards

    def look(self: Attack, part: str, cluster: Neighbours) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Keyring, "open", deaf)
            real(self, part, cluster)

    monkeypatch.setattr(Attack, "_look_afterwards", look)
    report = attack_of(200)
    assert any("afterwards the neighbours were" in broken for broken in report.broken)


def test_memory_that_grows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([0, attack.GROWTH_BYTES_MAX + 1])
    monkeypatch.setattr(attack, "resident_bytes", lambda: next(sizes))
    report = attack_of(200)
    assert any("memory grew" in broken for broken in report.broken)
    assert resident_bytes() > 1_000_000


def test_only_the_first_broken_promises_are_told_in_words() -> None:
    report = Report(3)
    for number in range(BROKEN_SHOWN + 5):
        report.breaks(f"promise {number}")
    lines = report.lines()
    assert lines[-1] == "seed 3: 0 datagrams, 15 promises broken"
    assert lines[-2] == "BROKEN: and 5 times more"
    assert len(lines) == BROKEN_SHOWN + 2


def test_makers_without_the_key_never_make_what_is_genuine() -> None:
    cluster = lived_in(3)
    listener = outside.Listener(cluster, random.Random(1))
    genuine = {item.datagram for item in listener.traffic}
    for kind, make in outside.MAKERS.items():
        made = [make(listener) for _ in range(200)]
        assert len(set(made)) > 100, kind
        assert kind == "replayed" or genuine.isdisjoint(made), kind


def test_genuine_traffic_has_every_kind_of_packet_that_cores_send() -> None:
    cluster = lived_in(3)
    packets = [wire.decode(item.clear) for item in (*cluster.heard, *cluster.overheard)]
    kinds = {type(packet.message).__name__ for packet in packets}
    assert kinds >= {"Ping", "Ack", "PingRequest", "Nack", "Gossip", "Accusation", "Hello"}
    assert any(packet.news for packet in packets)
    assert {claim.rank.name for packet in packets for claim in packet.rumors} == {
        "ALIVE",
        "SUSPECT",
        "DEAD",
        "LEFT",
    }


def test_the_command_says_what_it_did_and_fails_if_a_promise_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = partial(CliRunner().invoke, app, ["fuzz", "--packets", "300", "--seed", "4"])
    good = run()
    assert good.exit_code == 0, good.output
    assert "seed 4: 300 datagrams, all promises kept" in good.output
    monkeypatch.setattr(Replays, "is_fresh", lambda self, sender, boot, counter: True)
    bad = run()
    assert bad.exit_code == 1
    assert "BROKEN: outside" in bad.output
