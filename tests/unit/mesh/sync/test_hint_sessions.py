"""Nodes that tell each other hints: whom they call, when, and what becomes of calls that fail."""

from collections import Counter
from itertools import pairwise
from random import Random

import msgspec
import pytest

from smg_mesh.crdt.hints.hint_messages import (
    PART_HASHES,
    AskPart,
    Digest,
    Digests,
    HintError,
    encode_word,
)
from smg_mesh.crdt.hints.hint_publisher import DIGESTS_IDLE_MS, DIGESTS_IDLE_PER_PEER_MS
from smg_mesh.sync.hint_sessions import (
    AGAIN_MS,
    AGAIN_MS_MAX,
    CALLS_PER_S_MAX,
    LETTER_BYTES_MAX,
    MESSAGES_MAX,
    REST_MAX_MS,
    HintSessions,
)
from support.state.hint_world import DictStore, HintNet, HintNode


def letter(*messages: bytes) -> bytes:
    return msgspec.msgpack.encode(messages)


# ── Told and heard ───────────────────────────────────────────────────────────


def test_what_one_node_has_all_others_hold() -> None:
    net = HintNet("a", "b", "c")
    net.run(500)
    net.nodes["a"].add("w1", 1, 2, 3)
    net.nodes["b"].add("w1", 2)
    net.turn()
    assert net.agree()
    net.nodes["a"].remove("w1", 2)
    net.turn()
    assert net.agree()


def test_who_comes_late_fetches_a_hundred_thousand_in_calls_that_follow_each_other() -> None:
    net = HintNet("a", "b")
    for subject in ("w1", "w2", "w3", "w4"):
        net.nodes["a"].add(subject, *range(25_000))
    net.run(300)
    net.nodes["c"] = HintNode("c", 2)
    net.meet()
    net.run(300)
    assert net.agree()
    assert net.nodes["c"].talk.reader.fetched == 4


class Restful(HintNet):
    """Nodes that are looked at only when they say that something may be due, and checked all the time."""

    def __init__(self, *names: str, seed: int = 0) -> None:
        super().__init__(*names, seed=seed)
        self.rested = 0
        self.looked = 0

    def turn(self, *, step_ms: int = 100) -> None:
        self.now_ms += step_ms
        for node in list(self.nodes.values()):
            rests_ms = node.talk.rests_until_ms(self.now_ms)
            calls = node.talk.due(self.now_ms, calls_max=8)
            if rests_ms is None:
                self.looked += 1
            else:
                assert rests_ms > self.now_ms
                assert not calls
                self.rested += 1
            for name, letter in calls:
                self._call(node, name, letter)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_ever_due_to_a_node_at_rest(seed: int) -> None:
    """`rests_until_ms` is checked against `due` while hints come, go and get lost, peers come, die and hear nothing."""
    rng = Random(seed)
    net = Restful("a", "b", "c", seed=seed)
    for turn in range(1_500):
        node = rng.choice(list(net.nodes.values()))
        what = rng.randrange(60)
        subject, hashes = rng.choice(("w1", "w2")), [rng.randrange(200) for _ in range(5)]
        if what == 0:
            node.add(subject, *hashes)
        elif what == 1:
            node.remove(subject, *hashes)
        elif what == 2:
            node.talk.stream.mention(subject, hashes)
        elif what == 3:
            node.talk.stream.keep_quiet(quiet=rng.random() < 0.5)
        elif what == 4:
            node.talk.reader.doubt()
        elif what == 5:
            node.talk.reader.forget_subject(subject)
        elif what == 6 and len(net.nodes) > 2:
            del net.nodes[node.name]
            net.meet()
        elif what == 7 and len(net.nodes) < 5:
            net.nodes[f"n{turn}"] = HintNode(f"n{turn}", turn + 2)
            net.meet()
        elif what == 8:
            net.loss = rng.choice((0.0, 0.0, 0.3, 0.9))
        elif what == 9:
            net.cut = {node.name} if rng.random() < 0.5 else set()
        net.turn()
    assert net.rested > 0
    assert net.looked > 0


def test_at_rest_there_is_no_look_for_minutes() -> None:
    net = Restful("a", "b", "c")
    net.nodes["a"].add("w1", 1)
    net.run(30_000)
    before = net.looked
    net.run(600_000)
    assert net.looked == before
    now_ms = net.now_ms
    soonest = min(node.talk.rests_until_ms(now_ms) or now_ms for node in net.nodes.values())
    assert soonest - now_ms > 60_000
    net.nodes["b"].add("w1", 2)
    assert net.nodes["b"].talk.rests_until_ms(now_ms) is None
    net.turn()
    assert net.agree()


def test_a_node_without_peers_or_before_its_life_rests() -> None:
    talk = HintSessions(DictStore(), contents=lambda _: (), wanted=lambda *_: True)
    assert talk.rests_until_ms(5) == 5 + REST_MAX_MS
    talk.begin(1)
    talk.stream.add("w1", 1)
    assert talk.rests_until_ms(5) == 5 + REST_MAX_MS
    talk.set_peers({"b": 1})
    assert talk.rests_until_ms(5) is None


def test_nodes_at_rest_call_each_other_every_quarter_of_an_hour() -> None:
    net = HintNet("a", "b", "c")
    net.nodes["a"].add("w1", 1)
    net.run(10_000)
    net.calls.clear()
    for _ in range(3 * DIGESTS_IDLE_MS // 10_000):
        net.turn(step_ms=10_000)
    assert len(net.calls) == 3 * 2 * 3


def test_a_node_at_rest_calls_two_peers_a_minute_however_many_there_are() -> None:
    names = [f"n{number}" for number in range(60)]
    net = HintNet(*names)
    net.run(40_000)
    net.calls.clear()
    for _ in range(2 * 60 * DIGESTS_IDLE_PER_PEER_MS // 10_000):
        net.turn(step_ms=10_000)
    each = Counter(caller for _, caller, _, _ in net.calls)
    assert {each[name] for name in names} <= {2 * 59, 3 * 59}


def test_what_is_only_mentioned_reaches_everybody() -> None:
    net = HintNet("a", "b", "c")
    net.run(300)
    net.nodes["a"].talk.stream.mention("w1", [7, 8])
    net.run(300)
    for name in "bc":
        assert net.nodes[name].store.mentioned == [("a", "w1", (7, 8))]


def test_what_is_mentioned_before_the_first_call_to_a_peer_reaches_it() -> None:
    net = HintNet("a", "b", "c")
    net.nodes["a"].talk.stream.mention("w1", [7, 8])
    net.run(300)
    for name in "bc":
        assert net.nodes[name].store.mentioned == [("a", "w1", (7, 8))]


# ── Comings and goings ───────────────────────────────────────────────────────


def test_what_the_gone_said_goes_with_them_and_what_the_others_said_stays() -> None:
    net = HintNet("a", "b", "c")
    net.nodes["a"].add("w1", 1)
    net.nodes["b"].add("w1", 2)
    net.run(300)
    del net.nodes["a"]
    net.meet()
    assert dict(net.nodes["c"].store.hashes) == {("b", "w1"): {2}}
    assert net.agree()


def test_a_later_life_of_a_node_begins_anew() -> None:
    net = HintNet("a", "b")
    net.nodes["a"].add("w1", 1)
    net.nodes["b"].add("w2", 5)
    net.run(300)
    net.nodes["a"] = HintNode("a", 2)
    net.meet()
    assert net.nodes["b"].store.of("a") == {}
    net.nodes["a"].add("w1", 3)
    net.run(500)
    assert net.agree()


def test_a_stranger_is_not_listened_to_until_it_is_a_member() -> None:
    net = HintNet("a", "b")
    stranger = HintNode("x")
    stranger.add("w1", 1)
    stranger.talk.set_peers({"a": 1})
    net.nodes["x"] = stranger
    net.run(1_500)
    a = net.nodes["a"]
    assert (a.store.of("x"), a.talk.refused) == ({}, 3)
    net.meet()
    net.run(5_000)
    assert net.agree()


def test_before_its_life_has_begun_a_node_neither_calls_nor_listens() -> None:
    net = HintNet("a", "b")
    node = HintNode("x")
    node.talk = type(node.talk)(DictStore(), contents=lambda _: (), wanted=lambda *_: True)
    node.talk.set_peers({"a": 1})
    assert node.talk.due(0, calls_max=8) == ()
    with pytest.raises(HintError):
        node.talk.hear("a", letter(), 0)
    assert net.nodes["a"].talk.peers() == ["b"]


# ── Calls ────────────────────────────────────────────────────────────────────


def test_calls_that_fail_are_made_again_later_and_later_and_all_is_well_when_they_succeed() -> None:
    net = HintNet("a", "b")
    net.run(300)
    net.cut = {"b"}
    net.nodes["a"].add("w1", 1)
    net.calls.clear()
    net.run(100_000)
    whens = [when for when, caller, _, _ in net.calls if caller == "a"]
    apart = [after - before for before, after in pairwise(whens)]
    assert apart[:4] == [300, 2 * AGAIN_MS, 4 * AGAIN_MS, 8 * AGAIN_MS], "looked at each 100 ms"
    assert max(apart) <= AGAIN_MS_MAX + 1_000
    assert net.nodes["a"].talk.is_deaf("b")
    net.cut = set()
    net.run(40_000)
    assert net.agree()
    assert not net.nodes["a"].talk.is_deaf("b")


def test_what_was_asked_in_a_call_that_failed_is_asked_in_the_next_one() -> None:
    node = HintNode("b")
    node.talk.set_peers({"a": 1})
    page = encode_word(Digests(1, 1, "", (Digest("w1", 1, 7),), last=True))
    assert node.talk.reader.hear("a", page, now_ms=0) == [encode_word(AskPart(1, "w1", 0))]
    assert [name for name, _ in node.talk.due(0, calls_max=8)] == ["a"]
    node.talk.failed("a", 0)
    [(_, again)] = node.talk.due(AGAIN_MS, calls_max=8)
    assert encode_word(AskPart(1, "w1", 0)) in msgspec.msgpack.decode(again)


def test_no_peer_is_called_while_a_call_to_it_is_under_way() -> None:
    node = HintNode("a")
    node.talk.set_peers({"b": 1, "c": 1})
    calls = node.talk.due(0, calls_max=8)
    assert [name for name, _ in calls] == ["b", "c"]
    node.add("w1", 1)
    assert node.talk.due(10_000, calls_max=8) == []
    assert node.talk.answered("b", letter(), 10_000) is None
    assert [name for name, _ in node.talk.due(11_000, calls_max=8)] == ["b"]
    node.talk.failed("c", 11_000)
    node.talk.failed("nobody", 11_000)
    assert node.talk.answered("c", letter(), 11_000) is None


def test_where_more_want_calls_than_there_may_be_all_have_their_turn() -> None:
    node = HintNode("a")
    node.talk.set_peers({f"n{number}": 1 for number in range(20)})
    called: list[str] = []
    for now_ms in range(0, 2_000, 500):
        for name, _ in node.talk.due(now_ms, calls_max=5):
            called.append(name)
            node.talk.answered(name, letter(), now_ms)
        node.add("w1", now_ms)
    assert sorted(called) == sorted(f"n{number}" for number in range(20))


def test_many_peers_are_called_less_often_each() -> None:
    node = HintNode("a")
    node.talk.set_peers({f"n{number}": 1 for number in range(60)})
    called = 0
    for now_ms in range(0, 10_000, 50):
        node.add("w1", now_ms)
        for name, _ in node.talk.due(now_ms, calls_max=100):
            called += 1
            node.talk.answered(name, letter(), now_ms)
    assert called <= 10 * CALLS_PER_S_MAX * 1.1


def test_one_slow_peer_keeps_nothing_from_the_others() -> None:
    net = HintNet("a", "b", "c")
    net.turn()
    net.cut = {"c"}
    since_ms = net.now_ms
    for turn in range(100):
        net.nodes["a"].add("w1", *range(turn * 10, turn * 10 + 10))
        net.turn()
    a = net.nodes["a"]
    assert net.nodes["b"].store.of("a") == a.all()
    assert a.talk.silent_ms(net.now_ms) == {"b": 0, "c": net.now_ms - since_ms}


# ── Letters ──────────────────────────────────────────────────────────────────


def test_an_answer_is_never_larger_than_a_letter_and_the_rest_comes_later() -> None:
    node = HintNode("a")
    node.talk.set_peers({"b": 1})
    node.add("w1", *range(3 * PART_HASHES))
    asks = [encode_word(AskPart(1, "w1", 0))] * 30
    answer = node.talk.hear("b", letter(*asks), 0)
    assert len(answer) <= LETTER_BYTES_MAX + 1_024
    [(name, more)] = node.talk.due(100, calls_max=8)
    assert name == "b"
    assert len(more) <= LETTER_BYTES_MAX + 70_000


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xc1", b"\x91\x01", letter(b""), letter(b"\x90", b"x"), letter(*[b"x"] * 65)],
)
def test_what_makes_no_sense_is_counted_and_answered_with_nothing(garbage: bytes) -> None:
    net = HintNet("a", "b")
    net.nodes["b"].add("w1", 1)
    net.run(300)
    talk = net.nodes["a"].talk
    assert talk.hear("b", garbage, net.now_ms) == letter()
    assert 1 <= talk.refused <= MESSAGES_MAX
    assert net.agree()


def test_one_message_that_makes_no_sense_spoils_no_other() -> None:
    node = HintNode("a")
    node.talk.set_peers({"b": 1})
    node.add("w1", 1)
    answer = node.talk.hear("b", letter(b"\xc1", encode_word(AskPart(1, "w1", 0))), 0)
    assert len(msgspec.msgpack.decode(answer)) == 1
