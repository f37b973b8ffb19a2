"""The suite that a peer finder passes in front of every API server, scripted or real."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from smg_mesh.mesh import FindError
from smg_node.discovery.kubernetes.api_server import ApiServer
from smg_node.discovery.kubernetes.peer_finder import PeerFinder, PeerOptions
from support.kubernetes.running_source import PATIENCE_S
from support.kubernetes.source_contract import KubeStage, a_pod

ANNOTATION: Final = "sglang.ai/mesh-port"
PORT: Final = 7946


@asynccontextmanager
async def a_finder(stage: KubeStage, selector: str = "app=smg-node") -> AsyncIterator[PeerFinder]:
    """Return a finder in the namespace of the stage, and close it at the end."""
    options = PeerOptions(selector, stage.namespace, ANNOTATION, PORT)
    finder = PeerFinder(options, ApiServer(stage.access), monotonic_s=time.monotonic)
    try:
        yield finder
    finally:
        await finder.close()


async def a_peer(
    stage: KubeStage, name: str, ip: str, *, port: str = "", ready: bool = True
) -> None:
    """Make the pod of a node."""
    annotations = {ANNOTATION: port} if port else {}
    await a_pod(
        stage, name, ip, labels={"app": "smg-node"}, annotations=annotations, is_ready=ready
    )


async def until(finder: PeerFinder, fits: Callable[[str], bool]) -> None:
    """Return when what it finds, or why it finds nothing, fits: a real server's memory may be a moment behind."""
    said = ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not fits(said):
                await asyncio.sleep(0.05)
                try:
                    said = " ".join(str(address) for address in await finder.find())
                except FindError as error:
                    said = str(error)
    except TimeoutError:
        raise AssertionError(f"it did not come to that; the last: {said}") from None


async def shows(finder: PeerFinder, *addresses: str) -> None:
    """Return when it shows these, in this order."""
    await until(finder, lambda said: said == " ".join(addresses))


async def says(finder: PeerFinder, pattern: str) -> None:
    """Return when it shows nothing, for that reason."""
    await until(finder, lambda said: re.search(pattern, said) is not None)


async def peers_are_pods_with_an_address_ready_or_not(stage: KubeStage) -> None:
    """Pods of the label count, those that are ready first, each at its annotated port or at our own."""
    await a_peer(stage, "smg-0", "10.1.0.1", ready=False)
    await a_peer(stage, "smg-1", "10.1.0.2", port="7001")
    await a_peer(stage, "smg-2", "")
    await a_pod(stage, "vllm-0", "10.1.0.9")
    async with a_finder(stage) as finder:
        await shows(finder, "10.1.0.2:7001", "10.1.0.1:7946")
        assert finder.text == "pods of app=smg-node"


async def who_ends_is_no_peer(stage: KubeStage) -> None:
    """A pod whose deletion is ordered does not count, nor does one that has completed."""
    for number in range(3):
        await a_peer(stage, f"smg-{number}", f"10.1.0.{number + 1}")
    await stage.client.delete(stage.namespace, "smg-0")
    await stage.client.runs(
        stage.namespace, "smg-1", ip="10.1.0.2", is_ready=False, phase="Succeeded"
    )
    async with a_finder(stage) as finder:
        await shows(finder, "10.1.0.3:7946")
        await stage.client.delete(stage.namespace, "smg-2", grace_s=0)
        await a_peer(stage, "smg-3", "10.1.0.4")
        await shows(finder, "10.1.0.4:7946")


async def a_selection_of_nobody_is_named(stage: KubeStage) -> None:
    """Nothing selected, and a selector that is none, say so in words for operators."""
    async with a_finder(stage) as finder:
        await says(finder, "it selects no pod")
    async with a_finder(stage, "app in smg)") as finder:
        await says(finder, "400: list of pods in the namespace .*unable to parse")


async def the_right_to_list_is_enough(stage: KubeStage) -> None:
    """Without it the right is named; given back, the finder goes on."""
    await a_peer(stage, "smg-0", "10.1.0.1")
    await stage.allow("watch")
    async with a_finder(stage) as finder:
        await says(finder, "403: no right to list pods in the namespace")
        await stage.allow("list")
        await shows(finder, "10.1.0.1:7946")


async def a_server_that_was_away_is_asked_again(stage: KubeStage) -> None:
    """A server that is killed is named with its address; when it is back its pods are there."""
    await a_peer(stage, "smg-0", "10.1.0.1")
    async with a_finder(stage) as finder:
        await shows(finder, "10.1.0.1:7946")
        await stage.kill()
        await says(finder, "127.0.0.1")
        await stage.start()
        await shows(finder, "10.1.0.1:7946")


PeerClause = Callable[[KubeStage], Awaitable[None]]
PEER_CONTRACT: Final[tuple[PeerClause, ...]] = (
    peers_are_pods_with_an_address_ready_or_not,
    who_ends_is_no_peer,
    a_selection_of_nobody_is_named,
    the_right_to_list_is_enough,
    a_server_that_was_away_is_asked_again,
)
