"""Responses over the wire, with a history behind the surface whose store is in memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from smg_node.history.ports import HistoryOptions
from smg_node.history.runs.background_run import Pace
from smg_node.history.service.history_service import HistoryService
from smg_node.pipeline.generation.run_interface import Generations
from support.history.history_world import HistoryWorld, history_world
from support.http.http_node import Node
from support.http.raw_http import Response, ask

PATH = "/v1/responses"


class Here:
    """Builds one history behind the surface, which all its routes share, and keeps hold of it."""

    def __init__(self, options: HistoryOptions | None = None) -> None:
        self._options = options
        # The world's clock goes by its looks at it, so nothing is put off until a time.
        self._pace = Pace(flush_s=0, followed_flush_s=0)
        self.world: HistoryWorld = history_world()
        self._behind: Generations | None = None

    def __call__(self, generations: Generations) -> HistoryService:
        if generations is self._behind:
            return self.world.desks
        self._behind = generations
        self.world = history_world(generations=generations, options=self._options, pace=self._pace)
        return self.world.desks


async def post(served: Node, path: str = PATH, /, **body: Any) -> Response:
    return await ask(served.port, "POST", path, {"model": "m", **body})


async def get(served: Node, path: str) -> Response:
    return await ask(served.port, "GET", path)


def events_of(response: Response) -> list[dict[str, Any]]:
    frames = response.body.decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    events = []
    for frame in frames[:-2]:
        if frame.startswith(":"):
            continue
        name, data = frame.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


@asynccontextmanager
async def carried(served: Node, here: Here) -> AsyncIterator[None]:
    """Have registered responses made, as a running node does."""
    await get(served, f"{PATH}/resp_none")
    async with asyncio.TaskGroup() as group:
        carrying = group.create_task(here.world.runs.run())
        try:
            yield
        finally:
            carrying.cancel()
