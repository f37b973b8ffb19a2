"""Disk fault: the data folder of a node is filled to the last block."""

from smg_chaos.gameday.whole.faults.fault import Fault


class FullDisk(Fault):
    """The disk of the data folder is filled to the last block."""

    async def begin(self) -> None:
        """Fill it."""
        for node in self.nodes:
            self.scene.cluster.lab.fill(node.folder / "data")

    async def end(self) -> None:
        """Make room again."""
        for node in self.nodes:
            self.scene.cluster.lab.clear(node.folder / "data")
