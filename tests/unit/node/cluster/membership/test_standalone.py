import asyncio
from pathlib import Path

import pytest

from smg_node.cluster.factory import build_cluster, build_shared
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.cluster.membership.standalone import StandaloneNode
from smg_node.config.address import Address
from smg_node.config.settings import Settings
from smg_node.core.errors import SmgError
from smg_node.system_clock import SystemClock
from support.http.http_node import node
from support.mesh.shared_state_members import make_shared


def alone(folder: Path | None = None) -> tuple[StandaloneNode, Shutdown]:
    farewell = Shutdown()
    return StandaloneNode("a", farewell, SystemClock(), make_shared("a", folder)), farewell


async def test_a_node_alone_is_its_only_member() -> None:
    life, _ = alone()
    life.publish(Address("0.0.0.0", 1), None)
    (row,) = life.members()
    assert (row.name, row.state, row.me, row.meta) == ("a", "alive", True, {"http": "0.0.0.0:1"})
    assert life.member("a") == row
    card = life.card()
    assert (card.security, card.joined, card.members["alive"]) == ("alone", False, 1)
    assert life.events(0) == ()
    assert life.doubts().reasons == ()


async def test_what_needs_others_is_refused_with_what_to_do() -> None:
    life, _ = alone()
    with pytest.raises(SmgError) as joining:
        life.join(["b"])
    with pytest.raises(SmgError) as listing:
        await life.keyring("list", "", force=False)
    for error in (joining.value, listing.value):
        assert (error.status, error.code) == (409, "no_mesh")
        assert "--mesh-key FILE" in error.message


async def test_a_node_alone_can_be_set_aside_and_told_to_leave() -> None:
    async with node() as served:
        life, farewell = alone()
        farewell.server = served.server
        assert (await life.set_aside("a", on=True)).meta["draining"] is True
        assert life.card().drained
        assert "draining" not in (await life.set_aside("a", on=False)).meta
        life.leave()
    assert farewell.leaving
    with pytest.raises(SmgError, match="is leaving"):
        await life.set_aside("a", on=True)


async def test_nobody_else_is_known() -> None:
    life, _ = alone()
    with pytest.raises(SmgError, match="no member is called 'b'"):
        await life.set_aside("b", on=True)
    with pytest.raises(SmgError, match="no member is called 'b'"):
        await life.forget("b")
    with pytest.raises(SmgError, match="a is this node"):
        await life.forget("a")


async def test_a_node_alone_has_a_life_without_others() -> None:
    life, _ = alone()
    assert life.mesh is None
    await life.start()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(life.run())
        await asyncio.sleep(0)
        life.say_leaving()
        await life.say_goodbye()
        running.cancel()
    await life.stop()
    await life.stop()


async def test_what_was_written_to_a_node_alone_is_there_in_its_next_life(tmp_path: Path) -> None:
    farewell = Shutdown()
    for expected in (None, 1):
        shared = make_shared("a", tmp_path)
        life = StandaloneNode("a", farewell, SystemClock(), shared)
        await life.start()
        found = shared.settings.get("log_level")
        assert (None if found is None else found.value) == expected
        shared.settings.set("log_level", 1, version=None)
        await life.stop()


async def test_nothing_ever_happens_to_a_node_alone() -> None:
    life, _ = alone()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await anext(life.watch(0))


def test_without_a_keyring_a_node_is_alone(tmp_path: Path) -> None:
    from prometheus_client import CollectorRegistry

    from smg_node.system_clock import system_rng
    from smg_node.telemetry.metrics.meters import Meters

    meters = Meters(CollectorRegistry(), version="1")
    settings, clock, rng = Settings(data_dir=tmp_path), SystemClock(), system_rng()
    shared = build_shared(settings, clock=clock, rng=rng, meters=meters)
    life = build_cluster(
        settings, Shutdown(), shared=shared, version="1", clock=clock, rng=rng, meters=meters
    )
    assert isinstance(life, StandaloneNode)
    page = meters.exposition("")[0]
    assert b"smg_node_mesh_members{" not in page
    assert b'smg_node_state_entries{kind="workers"} 0.0' in page
    assert list(tmp_path.iterdir()) == []
