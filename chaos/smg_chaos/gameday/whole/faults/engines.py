"""Engine faults: SIGKILL or SIGSTOP of an engine under streams, which continue on others."""

from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.whole.faults.fault import Fault


class _Hurt(Fault):
    @property
    def engine(self) -> EngineProcess:
        """The one that is hurt."""
        return self.scene.engines[self.planned.victims[0]]

    async def healed(self) -> bool:
        """Return whether every node can use it again."""
        return await self.scene.is_usable()


class EngineDies(_Hurt):
    """SIGKILL, and another life at the same address."""

    async def begin(self) -> None:
        """Kill it."""
        self.engine.kill()
        await self.engine.ended()

    async def end(self) -> None:
        """Start it; return when it listens."""
        self.engine.start()
        await self.engine.listening()


class EngineStalls(_Hurt):
    """SIGSTOP: what it says late counts for nothing."""

    async def begin(self) -> None:
        """Stop it."""
        self.engine.stop()

    async def end(self) -> None:
        """Let it go on."""
        self.engine.go_on()
