from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.lab import ethernet_switch as module
from smg_chaos.gameday.lab.ethernet_switch import HELD_BACK_MS, Delivery, Switch
from smg_chaos.gameday.lab.link_rules import BLOCKED, LinkRule, RuleError

NAMES = ("a", "b", "c")
HARDWARE = tuple(bytes([2, 0, 0, 0, 0, number]) for number in range(3))
EVERYONE = b"\xff" * 6


def switch(seed: int = 1) -> Switch:
    return Switch(NAMES, HARDWARE, lambda link: Random(f"{seed}/{link}"))


def frame(receiver: bytes, content: bytes = b"") -> bytes:
    return receiver + bytes(8) + content


def to(name: str, content: bytes = b"") -> bytes:
    return frame(HARDWARE[NAMES.index(name)], content)


def test_a_frame_goes_to_its_address_and_nowhere_else() -> None:
    core = switch()
    assert core.take(0, to("b", b"x"), now_us=0) == [(1, to("b", b"x"))]
    assert core.next_due_us() is None


def test_a_frame_for_everyone_goes_to_all_but_its_sender() -> None:
    assert switch().take(1, frame(EVERYONE), now_us=0) == [
        (0, frame(EVERYONE)),
        (2, frame(EVERYONE)),
    ]


def test_a_frame_for_a_stranger_goes_to_all_but_its_sender() -> None:
    stranger = frame(b"\x02abcde")
    assert [port for port, _ in switch().take(2, stranger, now_us=0)] == [0, 1]


def test_a_frame_for_oneself_goes_nowhere() -> None:
    assert switch().take(0, to("a"), now_us=0) == []


@pytest.mark.parametrize("short", [b"", b"\xff" * 13])
def test_what_is_too_short_for_a_frame_is_nothing(short: bytes) -> None:
    core = switch()
    assert core.take(0, short, now_us=0) == []
    assert core.counts[0].packets == 0


def test_a_blocked_link_lets_nothing_through_in_its_direction_only() -> None:
    core = switch()
    core.set_rules({"a>b": BLOCKED})
    assert core.take(0, to("b"), now_us=0) == []
    assert core.take(1, to("a"), now_us=0) == [(0, to("a"))]
    assert core.take(0, to("c"), now_us=0) == [(2, to("c"))]
    assert core.counts[0].blocked == 1


def test_rules_change_what_is_sent_afterwards() -> None:
    core = switch()
    core.set_rules({"*": LinkRule(delay_ms=5)})
    assert core.take(0, to("b"), now_us=0) == []
    core.set_rules({})
    assert core.take(0, to("c"), now_us=1) == [(2, to("c"))]
    assert core.due(now_us=5000) == [(1, to("b"))]


def test_a_rule_for_nobody_changes_nothing() -> None:
    core = switch()
    core.set_rules({"a>b": BLOCKED})
    with pytest.raises(RuleError):
        core.set_rules({"a>z": BLOCKED})
    assert core.take(0, to("b"), now_us=0) == []


def test_a_delayed_frame_comes_at_its_time_and_not_before() -> None:
    core = switch()
    core.set_rules({"a>b": LinkRule(delay_ms=20)})
    assert core.take(0, to("b"), now_us=1_000) == []
    assert core.next_due_us() == 21_000
    assert core.due(now_us=20_999) == []
    assert core.due(now_us=21_000) == [(1, to("b"))]
    assert core.next_due_us() is None


def test_frames_with_one_delay_stay_in_order() -> None:
    core = switch()
    core.set_rules({"*": LinkRule(delay_ms=1)})
    for number in range(50):
        core.take(0, to("b", bytes([number])), now_us=0)
    assert [content[-1] for _, content in core.due(now_us=1000)] == list(range(50))


def test_jitter_spreads_frames_evenly_over_its_range() -> None:
    core = switch()
    core.set_rules({"a>b": LinkRule(delay_ms=10, jitter_ms=8)})
    arrived = []
    for _ in range(2000):
        core.take(0, to("b"), now_us=0)
        due_us = core.next_due_us()
        assert due_us is not None
        arrived.append(due_us / 1000)
        core.due(now_us=due_us)
    assert 10 <= min(arrived) < 10.2
    assert 17.8 < max(arrived) <= 18
    assert sum(arrived) / len(arrived) == pytest.approx(14, abs=0.2)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4, 0.8])
def test_the_asked_for_share_of_frames_is_lost(share: float) -> None:
    core = switch()
    core.set_rules({"a>b": LinkRule(loss=share)})
    passed = sum(len(core.take(0, to("b"), now_us=0)) for _ in range(20_000))
    assert passed == pytest.approx(20_000 * (1 - share), abs=300)
    assert core.counts[0].lost == 20_000 - passed
    assert core.counts[1].received_packets == passed


def test_everything_is_lost_or_doubled_where_that_is_asked_for() -> None:
    core = switch()
    core.set_rules({"a>b": LinkRule(loss=1), "a>c": LinkRule(duplicate=1)})
    assert core.take(0, to("b"), now_us=0) == []
    assert core.take(0, to("c"), now_us=0) == [(2, to("c"))] * 2


def test_the_asked_for_share_of_frames_comes_twice() -> None:
    core = switch()
    core.set_rules({"a>b": LinkRule(duplicate=0.25)})
    passed = sum(len(core.take(0, to("b"), now_us=0)) for _ in range(20_000))
    assert passed == pytest.approx(25_000, abs=300)


def test_a_frame_that_is_held_back_is_overtaken() -> None:
    core = switch()
    core.set_rules({"a>b": LinkRule(reorder=0.1)})
    arrived: list[Delivery] = []
    for number in range(200):
        now_us = number * 1000
        arrived += core.due(now_us=now_us)
        arrived += core.take(0, to("b", bytes([number])), now_us=now_us)
    arrived += core.due(now_us=200_000 + round(HELD_BACK_MS * 1000))
    order = [content[-1] for _, content in arrived]
    assert sorted(order) == list(range(200))
    late = sum(one > later for one, later in pairwise(order))
    assert 8 <= late <= 35


def test_what_a_place_sends_and_gets_is_counted_without_the_ethernet_header() -> None:
    core = switch()
    core.take(0, to("b", bytes(100)), now_us=7)
    core.take(0, frame(EVERYONE, bytes(10)), now_us=8)
    a, b, c = core.counts
    assert (a.packets, a.bytes) == (2, 110)
    assert (b.received_packets, b.received_bytes) == (2, 110)
    assert (c.received_packets, c.received_bytes) == (1, 10)


HERE, THERE = bytes([10, 77, 0, 1]), bytes([10, 77, 1, 1])
UDP, TCP, ICMP = 17, 6, 1


def packet(source: bytes, protocol: int, flags: int = 0) -> bytes:
    ip = b"\x45" + bytes(8) + bytes([protocol, 0, 0]) + source + bytes(4)
    return HARDWARE[1] + bytes(6) + b"\x08\x00" + ip + bytes(13) + bytes([flags]) + bytes(6)


def test_when_a_program_first_spoke_from_an_address_is_known() -> None:
    core = switch()
    assert core.spoken_us(HERE) is None
    core.take(0, packet(HERE, UDP), now_us=5)
    core.take(0, packet(HERE, UDP), now_us=6)
    core.take(0, packet(THERE, TCP, 0x02), now_us=7)
    assert (core.spoken_us(HERE), core.spoken_us(THERE)) == (5, 7)
    core.mark()
    assert core.spoken_us(HERE) is None
    core.take(0, packet(HERE, TCP, 0x10), now_us=9)
    assert core.spoken_us(HERE) == 9


@pytest.mark.parametrize(
    "refusal",
    [
        packet(HERE, ICMP),
        packet(HERE, TCP, 0x04),
        packet(HERE, TCP, 0x14),
        packet(HERE, TCP)[:47],
        packet(HERE, UDP)[:29],
        packet(HERE, UDP).replace(b"\x08\x00", b"\x86\xdd"),
    ],
)
def test_a_kernel_that_refuses_does_not_speak(refusal: bytes) -> None:
    core = switch()
    core.take(0, refusal, now_us=5)
    assert core.spoken_us(HERE) is None


def test_more_frames_than_fit_are_lost_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 3)
    core = switch()
    core.set_rules({"*": LinkRule(delay_ms=1)})
    for _ in range(5):
        core.take(0, to("b"), now_us=0)
    assert core.counts[0].overflowed == 2
    assert len(core.due(now_us=1000)) == 3


def fates(core: Switch, link: str, count: int) -> list[bool]:
    sender, _, receiver = link.partition(">")
    return [bool(core.take(NAMES.index(sender), to(receiver), now_us=0)) for _ in range(count)]


def test_one_seed_is_one_weather_and_another_seed_another() -> None:
    rules = {"*": LinkRule(loss=0.5)}
    one, again, other = switch(1), switch(1), switch(2)
    for core in (one, again, other):
        core.set_rules(rules)
    weather = fates(one, "a>b", 64)
    assert fates(again, "a>b", 64) == weather
    assert fates(other, "a>b", 64) != weather


def test_the_weather_of_a_link_does_not_depend_on_who_else_talks() -> None:
    rules = {"*": LinkRule(loss=0.5)}
    alone, among_others = switch(), switch()
    alone.set_rules(rules)
    among_others.set_rules(rules)
    expected = fates(alone, "a>b", 64)
    seen = []
    for _ in range(64):
        fates(among_others, "c>b", 3)
        seen += fates(among_others, "a>b", 1)
        fates(among_others, "b>a", 2)
    assert seen == expected


RULES = st.builds(
    LinkRule,
    delay_ms=st.floats(0, 50),
    jitter_ms=st.floats(0, 50),
    loss=st.floats(0, 1),
    duplicate=st.floats(0, 1),
    reorder=st.floats(0, 1),
    block=st.booleans(),
)
LINKS = st.sampled_from(["*", "a>*", "*>b", "a>b", "b>c", "c>a"])
FRAMES = st.tuples(st.integers(0, 2), st.binary(max_size=40), st.integers(0, 3))


@given(
    rules=st.dictionaries(LINKS, RULES, max_size=4),
    sent=st.lists(FRAMES, max_size=40),
    seed=st.integers(0, 9),
)
def test_nothing_is_made_up_and_every_copy_is_accounted_for(
    rules: dict[str, LinkRule], sent: list[tuple[int, bytes, int]], seed: int
) -> None:
    core = switch(seed)
    core.set_rules(rules)
    delivered: list[Delivery] = []
    targets = now_us = 0
    given_frames = set()
    for port, content, receiver in sent:
        now_us += 1000
        whole = content if receiver == 3 else frame(HARDWARE[receiver], content)
        known = HARDWARE.index(whole[:6]) if whole[:6] in HARDWARE else None
        if len(whole) >= 14:
            given_frames.add(whole)
            targets += 2 if known is None else int(known != port)
        delivered += core.due(now_us=now_us)
        delivered += core.take(port, whole, now_us=now_us)
    delivered += core.due(now_us=now_us + 1_000_000)
    assert core.next_due_us() is None
    assert {content for _, content in delivered} <= given_frames
    gone = sum(count.lost + count.blocked for count in core.counts)
    assert targets - gone <= len(delivered) <= 2 * (targets - gone)
    assert sum(count.received_packets for count in core.counts) == len(delivered)
