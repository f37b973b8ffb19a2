"""Ethernet switch without wires: a frame and the time go in, deliveries come out. Pure.

Every port has one fixed hardware address, so nothing is learned: a frame for a known address goes
to its port, any other (broadcast) to all ports but its own. On the way a rule may lose, double,
delay or hold it back.

Chance is one generator per directed link, made from the seed and the link's name. What happens to
the k-th frame of a link under a rule depends on nothing but seed, link and k, so two systems that
are compared meet the same faults however differently they communicate.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from smg_chaos.gameday.lab.link_rules import LinkRule, Rules, check, rule_of
from smg_node.core.ports import Rng

HELD_BACK_MS: Final = 10.0
"""How much longer a frame takes that later ones shall overtake."""
WAITING_MAX: Final = 100_000
"""Frames that may wait for their time; more are lost, as in any switch."""
_ADDRESS_BYTES: Final = 6
_HEADER_BYTES: Final = 14
_SPEAKERS_MAX: Final = 4096
# Where things are in a frame; IPv4 headers are taken to have no options, as none sent here has.
_TYPE: Final = slice(12, 14)
_PROTOCOL: Final = 23
_SOURCE: Final = slice(26, 30)
_TCP_FLAGS: Final = 47
_IPV4: Final = b"\x08\x00"
_UDP, _TCP, _RESET = 17, 6, 4

Delivery: TypeAlias = tuple[int, bytes]
"""A port's number, and what is to be sent out there."""


@dataclass(slots=True)
class PortCount:
    """Counters of one port: frames and bytes (of IP, without the Ethernet header) that its place
    sent.
    """

    packets: int = 0
    bytes: int = 0
    received_packets: int = 0
    received_bytes: int = 0
    lost: int = 0
    blocked: int = 0
    overflowed: int = 0


class Switch:
    """Ports in the order of `names`; `addresses` are their hardware addresses, six bytes each."""

    def __init__(
        self, names: Sequence[str], addresses: Sequence[bytes], chance: Callable[[str], Rng]
    ) -> None:
        assert len(names) == len(addresses)
        assert all(len(address) == _ADDRESS_BYTES for address in addresses)
        self.counts = [PortCount() for _ in names]
        self._names = tuple(names)
        self._port_of = {address: port for port, address in enumerate(addresses)}
        self._chance = chance
        self._rngs: dict[tuple[int, int], Rng] = {}
        self._rules: Rules = {}
        self._rule_of: dict[tuple[int, int], LinkRule] = {}
        self._waiting: list[tuple[int, int, int, bytes]] = []
        self._order = 0
        self._spoken: dict[bytes, int] = {}

    def set_rules(self, rules: Rules) -> None:
        """Use these rules for frames that come from now on; RuleError if they name no link."""
        check(rules, frozenset(self._names))
        self._rules = rules
        self._rule_of.clear()

    def mark(self) -> None:
        """Reset the record of senders."""
        self._spoken.clear()

    def spoken_us(self, address: bytes) -> int | None:
        """Return when a program first sent something from this IPv4 address since the last mark."""
        return self._spoken.get(address)

    def take(self, port: int, frame: bytes, *, now_us: int) -> list[Delivery]:
        """Accept a frame from a port, and return what is to be delivered at once."""
        if len(frame) < _HEADER_BYTES:
            return []
        count = self.counts[port]
        count.packets += 1
        count.bytes += len(frame) - _HEADER_BYTES
        if frame[_SOURCE] not in self._spoken and len(self._spoken) < _SPEAKERS_MAX:
            self._note_speaker(frame, now_us)
        known = self._port_of.get(frame[:_ADDRESS_BYTES])
        if known is not None:
            return self._pass(port, known, frame, now_us) if known != port else []
        everyone = [other for other in range(len(self._names)) if other != port]
        return [one for other in everyone for one in self._pass(port, other, frame, now_us)]

    def due(self, *, now_us: int) -> list[Delivery]:
        """Return what has waited long enough, in the order of its time."""
        ready: list[Delivery] = []
        while self._waiting and self._waiting[0][0] <= now_us:
            _, _, port, frame = heapq.heappop(self._waiting)
            ready.append((port, self._received(port, frame)))
        return ready

    def next_due_us(self) -> int | None:
        """Return when something has waited long enough, or None when nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    def _pass(self, sender: int, receiver: int, frame: bytes, now_us: int) -> list[Delivery]:
        rule = self._rule_of.get((sender, receiver)) or self._look_up(sender, receiver)
        count = self.counts[sender]
        if rule.block:
            count.blocked += 1
            return []
        rng = self._rngs[sender, receiver]
        if rule.loss and rng.random() < rule.loss:
            count.lost += 1
            return []
        at_once: list[Delivery] = []
        for _ in range(2 if rule.duplicate and rng.random() < rule.duplicate else 1):
            delay_us = _delay_us(rule, rng)
            if not delay_us:
                at_once.append((receiver, self._received(receiver, frame)))
            elif len(self._waiting) >= WAITING_MAX:
                count.overflowed += 1
            else:
                self._order += 1
                heapq.heappush(self._waiting, (now_us + delay_us, self._order, receiver, frame))
        return at_once

    def _look_up(self, sender: int, receiver: int) -> LinkRule:
        """Find a link's rule once, and make its generator if this is its first frame."""
        a, b = self._names[sender], self._names[receiver]
        rule = self._rule_of[sender, receiver] = rule_of(self._rules, a, b)
        if (sender, receiver) not in self._rngs:
            self._rngs[sender, receiver] = self._chance(f"{a}>{b}")
        return rule

    def _note_speaker(self, frame: bytes, now_us: int) -> None:
        if _is_spoken(frame):
            self._spoken[frame[_SOURCE]] = now_us

    def _received(self, port: int, frame: bytes) -> bytes:
        self.counts[port].received_packets += 1
        self.counts[port].received_bytes += len(frame) - _HEADER_BYTES
        return frame


def _is_spoken(frame: bytes) -> bool:
    """Return whether a program sent it: UDP, or TCP that is no refusal.

    An address at which nothing runs speaks too: its kernel refuses with ICMP or a TCP reset.
    """
    if frame[_TYPE] != _IPV4 or len(frame) < _SOURCE.stop:
        return False
    if frame[_PROTOCOL] == _TCP:
        return len(frame) > _TCP_FLAGS and not frame[_TCP_FLAGS] & _RESET
    return frame[_PROTOCOL] == _UDP


def _delay_us(rule: LinkRule, rng: Rng) -> int:
    delay_ms = rule.delay_ms
    if rule.jitter_ms:
        delay_ms += rule.jitter_ms * rng.random()
    if rule.reorder and rng.random() < rule.reorder:
        delay_ms += HELD_BACK_MS
    return round(delay_ms * 1000)
