import asyncio
import logging
from dataclasses import replace

import pytest

from smg_mesh.mesh import MeshError
from smg_node.cluster.membership.member import Member
from smg_node.cluster.membership.shutdown import OK, SUPERSEDED, Shutdown
from smg_node.config.address import Address
from smg_node.core.errors import SmgError
from support.mesh.fake_mesh import FakeMesh


def member() -> tuple[Member, FakeMesh, Shutdown]:
    mesh, farewell = FakeMesh(), Shutdown()
    return Member(mesh, farewell, security="encrypted"), mesh, farewell


async def test_a_start_says_where_with_whom_and_how_safely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    life, mesh, _ = member()
    with caplog.at_level(logging.INFO):
        await life.start()
        mesh.state = replace(mesh.state, seeds=())
        await life.start()
    assert [record.getMessage() for record in caplog.records] == [
        "mesh on 10.0.0.1:7946, encrypted, cluster 'blue', joins b:7946, nowhere",
        "mesh on 10.0.0.1:7946, encrypted, cluster 'blue', joins nobody: it waits to be joined",
    ]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (MeshError("cannot listen on 10.0.0.1:1 (UDP): in use"), "(--mesh names another address)"),
        (MeshError("mesh-key: there is no file k"), "mesh-key: there is no file k"),
        (ValueError("'x' names no host"), "'x' names no host"),
    ],
)
async def test_a_start_that_fails_names_the_knob(wrong: Exception, words: str) -> None:
    life, mesh, _ = member()
    mesh.wrong["start"] = wrong
    with pytest.raises(SmgError) as caught:
        await life.start()
    assert caught.value.message.startswith("the mesh does not start: ")
    assert caught.value.message.endswith(words)


async def test_only_who_has_met_nobody_yet_is_not_ready() -> None:
    life, mesh, _ = member()
    assert (life.doubts().reasons, life.doubts().degraded) == ((), ())
    mesh.why_not_ready = "joining: no seed has answered yet"
    mesh.state = replace(mesh.state, joined=False, degraded=("joining",))
    assert life.doubts().reasons == ("mesh: joining: no seed has answered yet",)
    mesh.state = replace(mesh.state, joined=True, degraded=("isolated: this node hears nobody",))
    mesh.why_not_ready = "isolated: this node hears nobody"
    assert life.doubts().reasons == ()
    assert life.doubts().degraded == ("isolated: this node hears nobody",)


async def test_who_has_met_the_others_but_not_what_they_share_is_not_ready() -> None:
    life, mesh, _ = member()
    mesh.why_not_ready = "joining: the cluster's state is not here yet"
    mesh.state = replace(mesh.state, joined=True, held=False)
    assert life.doubts().reasons == ("mesh: joining: the cluster's state is not here yet",)
    mesh.why_not_ready = None  # it has waited long enough
    assert life.doubts().reasons == ()
    mesh.why_not_ready = "isolated: this node hears nobody"
    mesh.state = replace(mesh.state, held=True)
    assert life.doubts().reasons == ()
    assert life.mesh is mesh


async def test_another_process_that_keeps_the_name_ends_this_one_with_a_code_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    life, mesh, farewell = member()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(life.run())
        await asyncio.sleep(0)
        assert not farewell.leaving
        mesh.superseded.set()
        async with asyncio.timeout(20):
            await farewell.wanted.wait()
        running.cancel()
    assert farewell.code == SUPERSEDED == 3
    assert "stepping down" in caplog.text
    await life.say_goodbye()
    assert ("leave",) not in mesh.calls


async def test_addresses_on_every_interface_are_told_as_the_meshs_own() -> None:
    life, mesh, _ = member()
    life.publish(Address("0.0.0.0", 30000), Address("127.0.0.1", 29000))
    assert mesh.meta == {"http": "10.0.0.1:30000", "metrics": "127.0.0.1:29000"}
    mesh.state = replace(mesh.state, address="[fd00::1]:7946")
    life.publish(Address("::", 30000), None)
    assert mesh.meta["http"] == "[fd00::1]:30000"


async def test_where_operators_are_answered_is_told_and_of_a_socket_that_it_is_one() -> None:
    life, mesh, _ = member()
    life.publish(Address("10.0.0.1", 30000), None, "0.0.0.0:7000")
    assert mesh.meta == {"http": "10.0.0.1:30000", "admin": "10.0.0.1:7000"}
    life.publish(Address("10.0.0.1", 30000), None, "unix:/run/smg-node/admin.sock")
    assert mesh.meta["admin"] == "unix"


async def test_others_are_told_what_waits_on_its_disk() -> None:
    life, mesh, _ = member()
    life.say_spooling(on=True)
    assert mesh.meta == {"spooled": True}
    life.say_spooling(on=False)
    assert mesh.meta == {"spooled": False}


async def test_a_mesh_that_has_not_begun_tells_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    life, mesh, _ = member()

    def refuse(**values: object) -> None:
        raise MeshError("not started")

    monkeypatch.setattr(mesh, "set_meta", refuse)
    life.say_spooling(on=True)


async def test_leaving_is_told_before_and_goodbye_after_the_drain() -> None:
    life, mesh, farewell = member()
    life.say_leaving()
    assert mesh.meta == {"leaving": True}
    await life.say_goodbye()
    await life.stop()
    assert mesh.calls == [("leave",), ("stop",)]
    assert farewell.code == OK


async def test_a_goodbye_that_fails_does_not_keep_the_node() -> None:
    life, mesh, _ = member()
    mesh.wrong["leave"] = MeshError("not started")
    await life.say_goodbye()
