"""Store faults: SIGKILL or SIGSTOP of the database server that history is kept in."""

from smg_chaos.gameday.whole.faults.fault import Fault


class _Away(Fault):
    async def healed(self) -> bool:
        """Return whether every node keeps something in the store again."""
        return await self.scene.keeps(self.scene.cluster.names)


class StoreDies(_Away):
    """SIGKILL of all its processes; it comes back on the files it had."""

    async def begin(self) -> None:
        """Kill it."""
        assert self.scene.store is not None
        await self.scene.store.kill()

    async def end(self) -> None:
        """Start it; return when it takes connections."""
        assert self.scene.store is not None
        await self.scene.store.start()


class StoreStalls(_Away):
    """SIGSTOP of all its processes: connections stay, and nothing is answered."""

    async def begin(self) -> None:
        """Stop it."""
        assert self.scene.store is not None
        self.scene.store.stop()

    async def end(self) -> None:
        """Let it go on."""
        assert self.scene.store is not None
        self.scene.store.go_on()
