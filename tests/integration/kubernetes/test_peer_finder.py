"""A peer finder in front of an API server that fails on purpose."""

import asyncio
import logging
from typing import Final

import pytest

from smg_mesh.mesh import FindError
from smg_node.discovery.kubernetes.api_server import ApiServer
from smg_node.discovery.kubernetes.peer_finder import PeerFinder, PeerOptions
from support.kubernetes.peer_contract import ANNOTATION, a_finder, a_peer, shows
from support.kubernetes.scripted_stage import scripted_stage

pytestmark: Final = [pytest.mark.integration, pytest.mark.asyncio]


async def test_peers_are_found_while_the_servers_store_is_away() -> None:
    async with scripted_stage() as stage, a_finder(stage) as finder:
        await a_peer(stage, "smg-0", "10.1.0.1")
        stage.faults.store_stopped = True
        async with asyncio.timeout(30):
            assert [str(one) for one in await finder.find()] == ["10.1.0.1:7946"]


async def test_a_server_that_wants_to_be_left_alone_is_not_asked_until_then() -> None:
    async with scripted_stage() as stage:
        await a_peer(stage, "smg-0", "10.1.0.1")
        options = PeerOptions("app=smg-node", stage.namespace, ANNOTATION, 7946)
        clock = [100.0]
        finder = PeerFinder(options, ApiServer(stage.access), monotonic_s=lambda: clock[0])
        stage.faults.failing, stage.faults.retry_after_s = {"list": 429}, 3600
        for _ in range(3):
            with pytest.raises(FindError, match="429: list of pods"):
                await finder.find()
        assert stage.server.audit.statuses["list 429"] == 1
        stage.faults.failing = {}
        with pytest.raises(FindError, match="429: list of pods"):
            await finder.find()
        clock[0] += 60.0
        await shows(finder, "10.1.0.1:7946")
        await finder.close()


async def test_a_wrong_annotation_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted_stage() as stage, a_finder(stage) as finder:
        await a_peer(stage, "smg-0", "10.1.0.1", port="mesh")
        with caplog.at_level(logging.WARNING, "smg_node.discovery"):
            for _ in range(3):
                await shows(finder, "10.1.0.1:7946")
    (record,) = caplog.records
    assert record.getMessage() == (
        f"mesh: pod serving/smg-0: its annotation {ANNOTATION} is 'mesh', and no port: 7946 is taken"
    )
