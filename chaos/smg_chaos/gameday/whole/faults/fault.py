"""Fault interface: begin, end, the nodes it affects, and whether its effects are over."""

from abc import ABC, abstractmethod

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.whole.plan import Planned
from smg_chaos.gameday.whole.scene import Scene


class Fault(ABC):
    """One fault of the plan, applied to the scene."""

    def __init__(self, scene: Scene, planned: Planned) -> None:
        self.scene = scene
        self.planned = planned

    @property
    def nodes(self) -> list[SmgAgent]:
        """The nodes that it hurts."""
        return [node for node in self.scene.nodes if node.name in self.planned.victims]

    @abstractmethod
    async def begin(self) -> None:
        """Hurt."""

    @abstractmethod
    async def end(self) -> None:
        """Hurt no more."""

    async def healed(self) -> bool:
        """Return whether it cannot be noticed any more: the cluster is whole."""
        return await self.scene.is_whole()
