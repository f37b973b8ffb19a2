"""Scene of the limits scenarios: nodes or gateways, engines and clients at places of their own, and
all records.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, until
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.limits.clients.client_messages import MODEL, TALK, Asks, Command, Reply
from smg_chaos.gameday.limits.clients.process_control import Clients
from smg_chaos.gameday.limits.clients.trial_records import Arrival, read_answers, read_arrivals
from smg_chaos.gameday.limits.engines import Engines, Speech
from smg_chaos.gameday.limits.headroom import Headroom
from smg_chaos.gameday.limits.story import Chapter, Hurt, Record
from smg_chaos.gameday.stage import Stage

ENGINES: Final = "engines"
CLIENTS: Final = "clients"
PLACES: Final = (ENGINES, CLIENTS)
"""Places beside those of the nodes."""
_CLIENTS: Final = 2
_READY_S: Final = 60.0
_TALK_PORT: Final = 61500


class Scene:
    """Engines and clients around a cluster. `hurt` has which nodes could not answer, and when.

    `talk` is the output and pace of the engines with unpredictable streams; None: there are none.
    """

    def __init__(self, stage: Stage, *, talk: Speech | None = None) -> None:
        self.stage = stage
        self.cluster = stage.cluster
        self.hurt = Hurt()
        self.headroom = Headroom()
        self.replies: list[Reply] = []
        folder = stage.cluster.agents[0].folder.parent
        self._told = folder / "chapters.jsonl"
        self._engines = [
            Engines(self.cluster, ENGINES, MODEL, workers=2, speech=Speech("endless", 1.0))
        ]
        if talk is not None:
            self._engines.append(
                Engines(self.cluster, ENGINES, TALK, workers=2, speech=talk, first_port=_TALK_PORT)
            )
        self._clients = [
            Clients(self.cluster, CLIENTS, number, seed=stage.rng.getrandbits(32), folder=folder)
            for number in range(_CLIENTS)
        ]

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        """Run engines and clients while inside; the nodes are the caller's to start."""
        for engines in self._engines:
            engines.start()
        try:
            for engines in self._engines:
                await engines.listening()
            for clients in self._clients:
                await clients.begin()
            self.headroom.look()
            yield
        finally:
            for clients in self._clients:
                clients.close()

    @property
    def urls(self) -> list[str]:
        """URLs of the engines."""
        return [url for engines in self._engines for url in engines.urls]

    def now_us(self) -> int:
        """Return the wall clock's time."""
        return self.cluster.now_ms() * 1000

    async def usable(self, agent: Agent) -> None:
        """Return when a node that was started can use every engine; ClusterError if it cannot for long."""
        assert isinstance(agent, SmgAgent)
        operator = Operator(agent)

        async def usable() -> bool:
            return await operator.ready() and (
                list((await operator.workers()).values()) == ["ready"] * len(self.urls)
            )

        if await until(self.cluster, usable, _READY_S) is None:
            raise ClusterError(f"{agent.name} does not bring up its workers:\n{agent.last_words()}")

    # ── Asking ──────────────────────────────────────────────────────────────

    async def rate(self, per_s: Mapping[str, float], asks: Asks | None = None) -> None:
        """Set the clients' rate to each node, a second, from now on; nodes not named get no
        requests.
        """
        share = 1 / len(self._clients)
        rates = [per_s.get(name, 0.0) * share for name in self.cluster.names]
        await self._all(Command("rate", per_s=rates, asks=asks))

    async def burst(
        self,
        counts: Mapping[str, int],
        asks: Asks | None = None,
        *,
        over_s: float = 0.0,
        until_us: int = 0,
    ) -> None:
        """Send each node so many requests, spread over so long, and then none.

        Up to `until_us`, refused ones come again when their answer says.
        """
        await self._each(
            [
                Command("burst", counts=mine, over_s=over_s, until_us=until_us, asks=asks)
                for mine in self._parts(counts)
            ]
        )

    async def connect(self, counts: Mapping[str, int]) -> None:
        """Open so many connections to each node, for a burst that comes soon."""
        await self._each([Command("connect", counts=mine) for mine in self._parts(counts)])

    def _parts(self, counts: Mapping[str, int]) -> list[list[int]]:
        """Return each client's share of these numbers, by node."""
        return [
            [_part(counts.get(name, 0), number) for name in self.cluster.names]
            for number in range(len(self._clients))
        ]

    async def dismissed(self) -> None:
        """Stop sending, and return when every answer has ended and no refused request comes again."""
        await self._all(Command("dismiss"))
        await self.quiet()

    async def quiet(self) -> None:
        """Stop sending, and return when every answer has ended."""
        await self._all(Command("rate", per_s=[0.0 for _ in self.cluster.names]))
        await self._all(Command("quiet"))

    async def room(self, window_us: int, room_us: int) -> None:
        """Return when so much of the window is left: at once, or at the beginning of the next
        one.
        """
        left_us = window_us - self.now_us() % window_us
        if left_us < room_us:
            await asyncio.sleep((left_us + 100_000) / 1e6)

    async def chapter(self, name: str, seconds: float) -> Chapter:
        """Continue for so long, as a chapter of that name."""
        began_us = self.now_us()
        await asyncio.sleep(seconds)
        return self.closed(name, began_us)

    def closed(self, name: str, began_us: int) -> Chapter:
        """Return the chapter of that name that began at some moment and ends now."""
        chapter = Chapter(name, began_us, self.now_us())
        idle = self.headroom.look()
        took_s = (chapter.ended_us - began_us) / 1e6
        self.stage.say(f"{name}: {took_s:.1f} s, {idle:.0%} of the machine idle")
        with self._told.open("ab") as told:  # for whoever looks at the records later
            told.write(msgspec.json.encode(chapter) + b"\n")
        return chapter

    async def record(self, since_us: int = 0) -> Record:
        """Return what was sent since a moment and has ended, and all arrivals at the engines."""
        self.replies = await self._all(Command("write"))
        answers = read_answers([clients.record for clients in self._clients])
        arrivals = read_arrivals([engines.account for engines in self._engines])
        return Record([one for one in answers if one.sent_us >= since_us], arrivals)

    def arrivals(self, model: str) -> dict[int, Arrival]:
        """Return the arrivals so far at the engines of a model, by serial number."""
        return read_arrivals([one.account for one in self._engines if one.model == model])

    async def _all(self, command: Command) -> list[Reply]:
        return await self._each([command] * len(self._clients))

    async def _each(self, commands: Sequence[Command]) -> list[Reply]:
        pairs = zip(self._clients, commands, strict=True)
        return list(await asyncio.gather(*(clients.do(command) for clients, command in pairs)))


def _part(count: int, number: int) -> int:
    """Return the share of a number that the `number`-th client takes."""
    return count * (number + 1) // _CLIENTS - count * number // _CLIENTS


def evenly(names: Sequence[str], total: float) -> dict[str, float]:
    """Return equal rates for all of these."""
    return {name: total / len(names) for name in names}


def mostly(names: Sequence[str], one: str, total: float, share: float = 0.95) -> dict[str, float]:
    """Return rates of which that share goes to one of the names, and the rest to the others alike."""
    rest = evenly([name for name in names if name != one], total * (1 - share))
    return {**rest, one: total * share}
