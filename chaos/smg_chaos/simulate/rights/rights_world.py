"""Rights of one world: definitions of limits, lives, books of what was admitted, and the judge."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.host import Host, Node
from smg_chaos.simulate.hosts.ports import HasChance, HasHosts, HasNodes, HasTrace
from smg_chaos.simulate.rights.admission_books import Books
from smg_chaos.simulate.rights.definitions import Definitions
from smg_chaos.simulate.rights.escrow import RightsFactory
from smg_chaos.simulate.rights.limit_judge import Judge
from smg_chaos.simulate.rights.open_permits import Openings
from smg_chaos.simulate.rights.rights_life import RightsWorld, Teller
from smg_chaos.simulate.rights.rights_setting import RightsSetting
from smg_mesh.escrow.book_rows import Minting
from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.messages.effects import Effect
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.swim.messages import Address

_SPREAD_MS: Final = (5, 400)
"""So long definitions take to the others, where there is a way."""
_AGAIN_MS: Final = 300


class MarketWorld(RightsWorld, HasChance, HasHosts, HasNodes, HasTrace, Protocol):
    """The world in which something is limited."""

    events: int


class Market:
    """One world's rights."""

    def __init__(self, world: MarketWorld, setting: RightsSetting) -> None:
        self.world = world
        self.setting = setting
        self.make_core: RightsFactory = setting.make_core or _real()
        self.definitions = Definitions(setting.limits)
        self.books = Books(world, self.definitions, phase_ms=setting.phase_ms)
        settling = frozenset(
            flow.key for flow in setting.flows if flow.settles and flow.used[1] > 1.0
        )
        self.openings = Openings(world, self.definitions)
        self.judge = Judge(world, self.books, settling=settling)
        self.packets: dict[str, int] = {}
        self.offices: list[tuple[int, Minting]] = []
        """(when, first row) of every owner of a window, in order."""
        self.failing_writes = setting.failing_writes
        self.awaited: list[Callable[[Teller, Sequence[Minted]], int]] = []
        """What is to happen with the next write of a kind; each says how much longer that takes, 0 of other writes."""
        self.roster_us = 0
        """When a node learned of another roster last."""
        self._tellers: dict[Node, Teller] = {}
        self._names: dict[Address, str] = {}
        self._forgetful: dict[str, None] = {}

    def born(self, node: Node) -> None:
        """Begin a life's rights."""
        host = node.host
        if host.lives == 1:
            host.clock_wrong_ms += self.wrong_ms(host.number)
        if host.lives > 1 and (host.disk.vault.roster is None or not self.setting.disks):
            self._forgetful[host.label] = None
            self.books.forgot(host.name)
        node.teller = self._tellers[node] = Teller(self, node)
        self.held()
        for limit in self._newest():
            self.tell(host, limit)

    def ended(self, node: Node) -> None:
        """Take note that a life is over."""
        teller = self.teller(node)
        if teller is not None:
            teller.over()
        self.held()

    def tellers(self) -> list[Teller]:
        """Return all that live now, in the order of their hosts."""
        return [self._tellers[node] for node in self.world.nodes() if node in self._tellers]

    def teller(self, node: Node | None) -> Teller | None:
        """Return the rights of a node, None before they began and where no node is."""
        return None if node is None else self._tellers.get(node)

    def is_forgetful(self, label: str) -> bool:
        """Return whether a life of that host began without the roster that an earlier one may have had."""
        return label in self._forgetful

    def pace_ppm(self, number: int) -> int:
        """Return how much faster the clock of that host runs."""
        return self.setting.pace_ppm[number] if number < len(self.setting.pace_ppm) else 0

    def wrong_ms(self, number: int) -> int:
        """Return how far the wall clock of that host is off, all the time."""
        wrong = self.setting.clock_wrong_ms
        return self.setting.phase_ms + (wrong[number] if number < len(wrong) else 0)

    def known_to(self, host: Host) -> Iterable[Limit]:
        """Return the definitions a life begins with: those on its disk, or the first ones there were."""
        first = {key: rulings[0].limit for key, rulings in self.definitions.rulings.items()}
        return (first | host.disk.vault.limits).values()

    def name_at(self, address: Address) -> str:
        """Return whose packets come from there."""
        if address not in self._names:
            for host in self.world.hosts.values():
                self._names[host.address] = host.name
        return self._names.get(address, "nobody")

    def count_packet(self, label: str) -> None:
        """Count a packet that a node sends."""
        self.packets[label] = self.packets.get(label, 0) + 1

    def wrote(self, teller: Teller, effects: Sequence[Effect]) -> None:
        """Count an input of a node's rights, and keep it in the trace."""
        world = self.world
        world.events += 1
        if world.trace is not None:
            world.trace.say(f"{world.agenda.now_us} {teller.node.host.label} rights {effects!r}")

    def writes(self, teller: Teller, rows: Sequence[Minted]) -> int:
        """Take note of what a node begins to write; return how much longer than usual that takes."""
        for one in self.awaited:
            longer_us = one(teller, rows)
            if longer_us:
                self.awaited.remove(one)
                return longer_us
        return 0

    def took_office(self, row: Minting) -> None:
        """Take note of who owns a window for the first time."""
        self.offices.append((self.world.agenda.now_us, row))

    # ── Definitions ──────────────────────────────────────────────────────────

    def change(self, limit: Limit, at: Host) -> None:
        """Let an operator at that node set a new version; the others hear of it."""
        self.definitions.add(limit, self.world.agenda.now_us)
        for host in self.world.hosts.values():
            if host is not at:
                self.tell(host, limit)
        teller = self.teller(at.node)
        if teller is not None:
            teller.learn(limit)
        self.held()

    def held(self) -> None:
        """Look which versions living nodes go by."""
        going = self.tellers()

        def _goes_by(limit: Limit) -> bool:
            return any(teller.heard.get(limit.key) == limit for teller in going)

        self.definitions.held(self.world.agenda.now_us, _goes_by)

    def tell(self, host: Host, limit: Limit) -> None:
        """Let a node hear of a version, soon, or as soon as it meets a node that knows it."""
        low_ms, high_ms = _SPREAD_MS
        delay_ms = low_ms + int(self.world.chance.random() * (high_ms - low_ms))
        at_us = self.world.agenda.now_us + delay_ms * MS
        self.world.agenda.deed(at_us, self._hears, host, limit)

    def _hears(self, host: Host, limit: Limit) -> None:
        teller = self.teller(host.node)
        if teller is None:
            return  # Its next life is told when it begins.
        known = teller.heard.get(limit.key)
        if known is not None and known.version >= limit.version:
            return
        if teller.node.stopped or not self._meets(host, limit):
            again_us = self.world.agenda.now_us + _AGAIN_MS * MS
            self.world.agenda.deed(again_us, self._hears, host, limit)
            return
        teller.learn(limit)
        self.held()

    def _meets(self, host: Host, limit: Limit) -> bool:
        """Return whether a node that knows a version can reach another."""
        for teller in self.tellers():
            other = teller.node.host
            if teller.heard.get(limit.key) == limit and not teller.node.stopped:
                rough = self.world.network.route(other, host.address).rough
                if rough is None or not rough.block:
                    return True
        return False

    def _newest(self) -> list[Limit]:
        return [rulings[-1].limit for rulings in self.definitions.rulings.values()]


def _real() -> RightsFactory:
    from smg_mesh.escrow.escrow_core import Escrow

    return Escrow
