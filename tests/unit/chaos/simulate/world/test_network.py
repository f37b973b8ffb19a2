import pytest

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import SECOND, Agenda
from smg_chaos.simulate.hosts.host import Host, numbered_address
from smg_chaos.simulate.hosts.link_faults import Rough, combined
from smg_chaos.simulate.hosts.network import Network, Wire

PACKETS = 4_000


class Wired:
    """Two hosts on a network, and what arrives at the second one."""

    def __init__(self, *rough: Rough) -> None:
        self.agenda = Agenda()
        self.network = Network(Wire(100, 50), self.agenda, chance(1, "test"))
        self.one = Host(0, "a", "a", numbered_address(1))
        self.other = Host(1, "b", "b", numbered_address(2))
        self.network.attach(self.one)
        self.network.attach(self.other)
        for rule in rough:
            self.network.add(rule)

    def arrivals(self, packets: int = PACKETS) -> list[tuple[int, bytes]]:
        """Send that many packets at one moment; return (when, which) in the order of arrival."""
        for number in range(packets):
            packet = number.to_bytes(4, "big")
            self.network.send(self.one, self.other.address, packet)
        return [(entry[0], entry[4]) for entry in sorted(self.agenda.entries)]


def test_a_good_link_delivers_all_once_and_in_time() -> None:
    arrived = Wired().arrivals()
    assert len({packet for _, packet in arrived}) == len(arrived) == PACKETS
    assert all(100 <= at_us < 150 for at_us, _ in arrived)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_loss_takes_its_share(share: float) -> None:
    arrived = len(Wired(Rough(loss=share)).arrivals())
    assert abs(arrived / PACKETS - (1 - share)) < 0.03


def test_losses_add_up_as_independent_chances() -> None:
    arrived = len(Wired(Rough(loss=0.5), Rough(loss=0.5, sources=("a",))).arrivals())
    assert abs(arrived / PACKETS - 0.25) < 0.03


def test_a_one_way_rule_holds_one_way() -> None:
    wired = Wired(Rough(sources=("a",), targets=("b",), block=True))
    assert wired.arrivals() == []
    wired.network.send(wired.other, wired.one.address, b"back")
    assert len(wired.agenda.entries) == 1


def test_a_rule_both_ways_holds_both_ways() -> None:
    wired = Wired(Rough(sources=("b",), both_ways=True, block=True))
    assert wired.arrivals() == []
    wired.network.send(wired.other, wired.one.address, b"back")
    assert wired.agenda.entries == []


def test_duplicates_come_twice() -> None:
    arrived = Wired(Rough(duplicate=0.3)).arrivals()
    assert abs(len(arrived) / PACKETS - 1.3) < 0.03


def test_reordering_changes_the_order_and_loses_nothing() -> None:
    wired = Wired(Rough(reorder=0.5))
    arrived = [packet for _, packet in wired.arrivals()]
    assert len(arrived) == PACKETS
    assert arrived != sorted(arrived)


def test_a_rule_that_is_dropped_holds_no_longer() -> None:
    wired = Wired()
    number = wired.network.add(Rough(block=True))
    assert wired.arrivals(10) == []
    wired.network.drop(number)
    assert len(wired.arrivals(10)) == 10
    wired.network.add(Rough(block=True))
    wired.network.heal()
    assert len(wired.arrivals(10)) == 20


def test_delays_add_up() -> None:
    arrived = Wired(Rough(delay_us=1_000), Rough(delay_us=500, jitter_us=10)).arrivals()
    assert all(1_600 <= at_us < 1_660 for at_us, _ in arrived)


def test_nobody_is_at_an_old_address() -> None:
    wired = Wired()
    old = wired.other.address
    assert len(wired.arrivals(1)) == 1
    wired.network.move(wired.other, numbered_address(9))
    wired.network.send(wired.one, old, b"lost")
    wired.network.send(wired.one, numbered_address(9), b"found")
    assert [entry[4] for entry in sorted(wired.agenda.entries)][1:] == [b"found"]


def test_no_rules_combine_to_a_good_link() -> None:
    assert combined([]) == Rough()


def test_the_agenda_keeps_the_order_of_planning_among_equals() -> None:
    agenda = Agenda()
    agenda.now_us = SECOND
    for number in range(5):
        agenda.deed(0, print, number)
    agenda.deed(2 * SECOND, print, "later")
    assert [entry[5] for entry in sorted(agenda.entries)] == [
        *((number,) for number in range(5)),
        ("later",),
    ]
    assert [entry[0] for entry in sorted(agenda.entries)] == [SECOND] * 5 + [2 * SECOND]
