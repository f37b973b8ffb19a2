import random

import pytest

from smg_mesh.crdt.registers.register_codec import REGISTER_BYTES_MAX
from smg_mesh.state.workers.health_verdicts import (
    Verdict,
    Verdicts,
    decode_verdicts,
    encode_verdicts,
)
from support.state.register_world import RegisterWorld, Rumor

WORKERS = tuple(f"w-{number:012x}" for number in range(10_000))


class Cluster:
    """Nodes with their verdicts."""

    def __init__(self, *names: str) -> None:
        self.world = RegisterWorld(*names)
        self.views = {name: Verdicts(self.world[name].bound, name) for name in names}

    def __getitem__(self, name: str) -> Verdicts:
        return self.views[name]

    def pass_time(self, span_ms: int, *, step_ms: int = 50) -> None:
        """Let time pass; every node says what is due."""
        for _ in range(0, span_ms, step_ms):
            self.world.pass_time(step_ms, step_ms=step_ms)
            for name in self.world.nodes:
                self.views[name].refresh()

    def said(self, of: str, worker_id: str) -> list[tuple[str, bool, str]]:
        return [(said.node, said.up, said.reason) for said in self.views[of].of(worker_id)]


def test_all_nodes_know_what_each_prober_says() -> None:
    cluster = Cluster("a", "b", "c")
    cluster["b"].publish("w1", up=True)
    cluster["a"].publish("w1", up=False, reason="timeout")
    for name in ("a", "b", "c"):
        assert cluster.said(name, "w1") == [("a", False, "timeout"), ("b", True, "")]
        assert cluster.said(name, "w2") == []


def test_a_change_is_said_at_once_and_told_to_watchers() -> None:
    cluster = Cluster("a", "b")
    heard: list[tuple[str, tuple[str, ...]]] = []
    for name in ("a", "b"):
        cluster[name].watch(lambda ids, name=name: heard.append((name, tuple(ids))))  # type: ignore[misc]  # bound now
    for worker_id in ("w2", "w1"):
        cluster["a"].publish(worker_id, up=True)
    cluster.pass_time(20_000)
    heard.clear()
    cluster["a"].publish("w1", up=False, reason="refused")
    assert cluster.said("b", "w1") == [("a", False, "refused")]
    assert heard == [("b", ("w1",)), ("a", ("w1",))]
    cluster.pass_time(30_000)
    assert len(heard) == 2


def test_verdicts_that_come_in_a_row_are_gathered_and_the_last_counts() -> None:
    cluster = Cluster("a", "b")
    for number in range(70):
        cluster["a"].publish(WORKERS[number], up=number % 2 == 0)
        cluster.pass_time(10, step_ms=10)
    assert len(cluster.world["a"].said) <= 4
    cluster.pass_time(300)
    assert [cluster.said("b", WORKERS[number])[0][1] for number in range(4)] == [
        True,
        False,
        True,
        False,
    ]
    assert cluster.said("a", WORKERS[69]) == [("a", False, "")]


def test_a_verdict_never_lapses_while_its_node_lives() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish("w1", up=True)
    for _ in range(200):
        cluster.pass_time(1_000, step_ms=500)
        assert cluster.said("b", "w1") == [("a", True, "")]
    assert len(cluster.world["a"].said) < 30
    (verdict,) = cluster["b"].of("w1")
    assert 0 <= verdict.age_ms <= 10_000


def test_a_verdict_stays_though_three_rumors_in_a_row_are_lost() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish("w1", up=True)
    cluster.pass_time(30_000, step_ms=500)
    heard = 0
    lost = 0

    def deliver(rumor: Rumor, to: str) -> bool:
        nonlocal heard, lost
        if lost < 3:
            lost += 1
            return False
        heard, lost = heard + 1, 0
        return True

    cluster.world.deliver = deliver
    for _ in range(200):
        cluster.pass_time(1_000, step_ms=500)
        assert cluster.said("b", "w1") == [("a", True, "")]
    assert heard >= 4


def test_a_change_whose_rumor_was_lost_is_heard_a_second_later() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish("w1", up=True)
    cluster.pass_time(60_000, step_ms=500)
    cluster.world.deliver = lambda rumor, to: False
    cluster["a"].publish("w1", up=False)
    cluster.world.deliver = lambda rumor, to: True
    assert cluster.said("b", "w1") == [("a", True, "")]
    cluster.pass_time(1_000)
    assert cluster.said("b", "w1") == [("a", False, "")]


def test_a_verdict_lapses_when_its_prober_hangs() -> None:
    cluster = Cluster("a", "b")
    heard: list[str] = []
    cluster["b"].watch(heard.extend)
    for _ in range(10):
        cluster["a"].publish("w1", up=True, ttl_ms=6_000)
        cluster["a"].publish("w2", up=True)
        cluster.pass_time(2_000)
        assert cluster.said("b", "w1") == [("a", True, "")]
    cluster.pass_time(4_300)
    assert cluster.said("a", "w1") == []
    assert cluster.said("b", "w1") == []
    assert cluster.said("b", "w2") == [("a", True, "")]
    assert heard == ["w1", "w2", "w1"]
    cluster["a"].publish("w1", up=True, ttl_ms=6_000)
    cluster["a"].publish("w1", up=True)
    cluster.pass_time(60_000, step_ms=1_000)
    assert cluster.said("b", "w1") == [("a", True, "")]


def test_a_prober_that_is_none_any_more_says_nothing() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish("w1", up=True)
    cluster["a"].publish("w2", up=True)
    cluster.pass_time(1_000)
    cluster["a"].forget("w1")
    cluster["a"].forget("w1")
    cluster["a"].forget("never")
    cluster.pass_time(300)
    assert cluster.said("b", "w1") == []
    assert cluster.said("b", "w2") == [("a", True, "")]
    cluster["a"].forget("w2")
    cluster.pass_time(300)
    assert cluster.said("b", "w2") == []
    spoken = len(cluster.world["a"].said)
    cluster.pass_time(60_000, step_ms=1_000)
    assert len(cluster.world["a"].said) == spoken
    assert cluster["a"].refresh() is None


def test_what_a_dead_node_said_is_gone_ten_seconds_later() -> None:
    cluster = Cluster("a", "b")
    heard: list[str] = []
    cluster["a"].publish("w1", up=True)
    cluster.world.kill("a")
    cluster["b"].watch(heard.extend)
    cluster.pass_time(9_900)
    assert cluster.said("b", "w1") == [("a", True, "")]
    cluster.pass_time(200)
    assert cluster.said("b", "w1") == []
    assert heard == ["w1"]


def test_ages_are_those_of_the_last_word() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish("w1", up=True)
    cluster.pass_time(700)
    assert cluster["a"].of("w1") == [Verdict("a", True, "", 700)]
    assert cluster["b"].of("w1") == [Verdict("a", True, "", 700)]
    cluster["a"].publish("w1", up=True)
    assert cluster["a"].of("w1") == [Verdict("a", True, "", 0)]
    cluster.pass_time(300)
    assert cluster["b"].of("w1") == [Verdict("a", True, "", 0)]


def test_sixty_eight_verdicts_fit_into_a_register_with_reasons_if_they_are_few() -> None:
    cluster = Cluster("a", "b")
    for number, worker_id in enumerate(WORKERS[:68]):
        cluster["a"].publish(worker_id, up=number > 2, reason="" if number > 2 else "timeout")
    cluster.pass_time(300)
    assert {rumor.key for rumor in cluster.world["a"].said} == {"0"}
    assert cluster.said("b", WORKERS[0]) == [("a", False, "timeout")]
    assert cluster.said("b", WORKERS[67]) == [("a", True, "")]
    cluster["a"].publish(WORKERS[68], up=True)
    assert {rumor.key for rumor in cluster.world["a"].said} == {"0", "1"}


def test_reasons_that_find_no_room_are_left_out_and_verdicts_never() -> None:
    said = {
        worker_id: (number % 2 == 0, f"{number % 9}" * 40 if number < 60 else "timeout")
        for number, worker_id in enumerate(WORKERS[:68])
    }
    content = encode_verdicts(said)
    assert len(content) <= REGISTER_BYTES_MAX
    heard = decode_verdicts(content)
    assert {worker_id: up for worker_id, (up, _) in heard.items()} == {
        worker_id: up for worker_id, (up, _) in said.items()
    }
    assert all(reason in ("", said[worker_id][1]) for worker_id, (_, reason) in heard.items())
    assert any(reason for _, reason in heard.values())


def test_names_of_any_kind_travel() -> None:
    cluster = Cluster("a", "b")
    names = ["w1", "ü" * 64, "w-ABCDEF012345", "w-0123456789ab"]
    for name in names:
        cluster["a"].publish(name, up=True, reason="x" * 100)
    cluster.pass_time(300)
    for name in names:
        assert cluster.said("b", name) == [("a", True, "x" * 40)]
    for name in ("", "x" * 65):
        with pytest.raises(ValueError, match="is no worker"):
            cluster["a"].publish(name, up=True)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x91" * 400,
        encode_verdicts({"w1": (True, "")})[:-1],
        b"\x91\x94\xc3\xa0\xc4\x05abcde\x90",
        b"\x91\x94\xc3\xa0\xc4\x00\x91\xa0",
        b"\x91\x94\x01\xa0\xc4\x00\x90",
        b"\x91\x94\xc3\xa1\xff\xc4\x00\x90",
    ],
)
def test_a_register_without_sense_says_nothing(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_verdicts(content)
    cluster = Cluster("a", "b")
    cluster["a"].publish("w1", up=True)
    cluster.pass_time(200)
    cluster.world["a"].bound.set("v", "0", content, ttl_ms=4_000)
    assert cluster.said("b", "w1") == []
    assert cluster["b"].garbage == 1


def test_a_history_of_changes_under_loss_ends_in_agreement() -> None:
    rng = random.Random(5)
    cluster = Cluster("a", "b", "c")
    late: list[tuple[Rumor, str]] = []
    wanted: dict[tuple[str, str], tuple[bool, str]] = {}

    def deliver(rumor: Rumor, to: str) -> bool:
        if rng.random() < 0.4:
            late.append((rumor, to))
        return rng.random() < 0.5

    cluster.world.deliver = deliver
    for _ in range(2_000):
        name, worker_id = rng.choice("abc"), WORKERS[rng.randrange(300)]
        if rng.random() < 0.3:
            cluster[name].forget(worker_id)
            wanted.pop((name, worker_id), None)
        else:
            verdict = rng.choice(((True, ""), (False, "timeout"), (False, "refused")))
            cluster[name].publish(worker_id, up=verdict[0], reason=verdict[1])
            wanted[name, worker_id] = verdict
        cluster.pass_time(20, step_ms=20)
        if late and rng.random() < 0.5:
            rumor, to = late.pop(rng.randrange(len(late)))
            cluster.world[to].hear(rumor)
    cluster.world.deliver = lambda rumor, to: True
    cluster.pass_time(60_000, step_ms=500)
    for of in ("a", "b", "c"):
        for worker_id in WORKERS[:300]:
            expected = [
                (name, *wanted[name, worker_id]) for name in "abc" if (name, worker_id) in wanted
            ]
            assert cluster.said(of, worker_id) == expected


def test_ten_thousand_workers_cost_little_once_they_are_known() -> None:
    cluster = Cluster("a", "b", "c")
    for name in ("a", "b", "c"):
        for worker_id in WORKERS:
            cluster[name].publish(worker_id, up=True)
    cluster.pass_time(60_000, step_ms=500)
    assert len(cluster["a"].of(WORKERS[-1])) == 3
    for node in cluster.world.nodes.values():
        node.said.clear()
    span_s = 300
    for second in range(span_s):
        for name in ("a", "b", "c"):
            # One worker in ten thousand changes its mind each second.
            cluster[name].publish(WORKERS[second], up=False, reason="timeout")
        cluster.pass_time(1_000, step_ms=500)
    bytes_per_s = sum(rumor.size_bytes for rumor in cluster.world.said()) / span_s
    assert 500 < bytes_per_s < 8_000
    for name in ("a", "b", "c"):
        assert all(len(cluster[name].of(worker_id)) == 3 for worker_id in WORKERS)
