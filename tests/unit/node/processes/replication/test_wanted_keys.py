"""Wanted keys: data processes wait for what their control process fetches, and do not pester it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

from smg_mesh.shared import IssuerKeySet
from smg_node.cluster.issuers.issuer_tasks import IssuerTasks
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.ipc.ipc_link import AnswerError
from smg_node.processes.replication.wanted_keys import WANTED, answer_wants, wanted_keys
from support.access.key_world import MovedClock, settled

OLD, NEW = b'{"keys":[]}', b'{"keys":[{"kid":"new"}]}'


class Sets:
    """Key sets as one process has them."""

    def __init__(self, document: bytes = OLD) -> None:
        self.document = document

    def held(self, alias: str) -> IssuerKeySet | None:
        return IssuerKeySet(alias, self.document, 1) if alias == "corp" else None


class Scene:
    """A control process and a data process, and the link between them."""

    def __init__(self) -> None:
        self.clock = MovedClock()
        self.control, self.data = Sets(), Sets()
        self.tasks = IssuerTasks()
        self.linked = True
        self.broken = False
        self.asked = 0
        self.fetching: asyncio.Future[None] | None = None
        self._answer: Callable[[str, bytes], Awaitable[bytes]]
        answer_wants(cast("Bus", self), lambda alias: self.fetching, self.control.held)
        self.want = wanted_keys(cast("Uplink", self), self.data.held, self.clock, self.tasks.spawn)

    def answer(self, name: str, answerer: Callable[[str, bytes], Awaitable[bytes]]) -> None:
        assert name == WANTED
        self._answer = answerer

    async def ask(self, name: str, payload: bytes) -> bytes:
        self.asked += 1
        if self.broken:
            raise AnswerError("it does not know the question")
        return await self._answer("1-1", payload)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            loop = group.create_task(self.tasks.run(()))
            await settled()
            yield
            loop.cancel()


async def test_it_waits_until_what_was_fetched_is_here_too() -> None:
    scene = Scene()
    async with scene.running():
        scene.fetching = asyncio.get_running_loop().create_future()
        wanted = scene.want("corp")
        await settled()
        assert wanted is not None
        assert scene.want("corp") is wanted
        scene.control.document = NEW
        scene.fetching.set_result(None)
        await settled()
        assert not wanted.done(), "the change is on its way"
        scene.data.document = NEW
        await asyncio.wait_for(asyncio.shield(wanted), 30)
        assert scene.asked == 1


async def test_where_nothing_came_the_control_process_is_left_alone_for_a_second() -> None:
    scene = Scene()
    async with scene.running():
        wanted = scene.want("corp")
        assert wanted is not None
        await asyncio.wait_for(asyncio.shield(wanted), 30)
        scene.clock.seconds += 0.9
        assert scene.want("corp") is None
        assert scene.want("other") is not None
        scene.clock.seconds += 0.1
        assert scene.want("corp") is not None
        await settled()
        assert scene.asked == 3


async def test_without_a_control_process_nothing_is_promised() -> None:
    scene = Scene()
    assert scene.want("corp") is None, "nothing runs yet"
    async with scene.running():
        scene.linked = False
        assert scene.want("corp") is None
        scene.linked, scene.broken = True, True
        wanted = scene.want("corp")
        assert wanted is not None
        await asyncio.wait_for(asyncio.shield(wanted), 30)
