"""Network faults: cut-off minority, one-way cut, isolated machine, loss, duplicates and delay."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Final

from smg_chaos.gameday.lab.link_rules import BLOCKED, LinkRule, cut
from smg_chaos.gameday.whole.faults.fault import Fault
from smg_chaos.gameday.whole.scene import PLACES

_WEATHER: Final = LinkRule(delay_ms=5.0, jitter_ms=20.0, loss=0.1, duplicate=0.1, reorder=0.05)


class _Rules(Fault):
    """Something that is wrong with the network until it is right again."""

    async def begin(self) -> None:
        """Let it happen to every frame from now on."""
        self.scene.set_rules(self.planned.kind.name, self.rules())

    async def end(self) -> None:
        """Let no frame suffer any more."""
        self.scene.set_rules(self.planned.kind.name, {})

    @abstractmethod
    def rules(self) -> Mapping[str, LinkRule]:
        """Return what happens on which links."""

    @property
    def others(self) -> list[str]:
        """The nodes that are not hurt."""
        names = self.scene.cluster.names
        return [name for name in names if name not in self.planned.victims]


class Partition(_Rules):
    """A minority talks to no other node; clients, engines and the store reach all nodes."""

    def rules(self) -> Mapping[str, LinkRule]:
        """Return a cut in both directions."""
        return cut(self.planned.victims, self.others)


class OneWay(_Rules):
    """Packets of one node reach no other node, while it receives those of all others."""

    def rules(self) -> Mapping[str, LinkRule]:
        """Return a cut in one direction."""
        return {f"{a}>{b}": BLOCKED for a in self.planned.victims for b in self.others}


class Isolate(_Rules):
    """A machine whose cable was pulled: no peer, no client, no engine, no store."""

    def rules(self) -> Mapping[str, LinkRule]:
        """Return a cut from all other machines."""
        return cut(self.planned.victims, [*self.others, *PLACES])

    async def healed(self) -> bool:
        """Return whether the cluster is whole, and the machine keeps something in the store again."""
        return await super().healed() and await self.scene.keeps(self.planned.victims)


class Weather(_Rules):
    """Between nodes one packet in ten is lost, one in ten comes twice, and all are late."""

    def rules(self) -> Mapping[str, LinkRule]:
        """Return the same for all links between nodes."""
        names = self.scene.cluster.names
        return {f"{a}>{b}": _WEATHER for a in names for b in names if a != b}
