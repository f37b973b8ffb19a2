"""How far a member is: what this node says of itself, and what it makes of others' words."""

from typing import Any, cast

import msgspec
import pytest

from smg_mesh.mesh import AskError
from smg_node.cluster.membership.cluster_service import ClusterService
from smg_node.cluster.membership.drain_status import DRAIN, Draining
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.core.errors import SmgError
from smg_node.http.app import Server
from smg_node.http.middleware.drain_phases import DrainTimes, Phase
from smg_node.http.ports.drain import DrainView, Duties, OpenWork
from support.mesh.fake_mesh import FakeMesh, member_view


class _Server:
    """As much of a server as a farewell sees."""

    def __init__(self) -> None:
        self.phase = Phase.SERVING
        self.aside = False

    def set_aside(self, *, on: bool) -> None:
        self.aside = on

    def farewell_times(self) -> DrainTimes:
        return DrainTimes(0.0, None, 185.0)


class World:
    """Node a, its mesh and its server, and what is open."""

    def __init__(self) -> None:
        self.mesh = FakeMesh()
        self.farewell = Shutdown()
        self.server = _Server()
        self.farewell.server = cast(Server, self.server)
        self.open = OpenWork(taking=True)
        desk = ClusterService(self.mesh, self.farewell)
        self.draining = Draining(
            "a",
            desk.members,
            self.mesh,
            self.farewell,
            work=self._work,
            duties=lambda: Duties(workers=4),
        )

    async def _work(self) -> OpenWork:
        return self.open


@pytest.mark.parametrize(
    ("aside", "open_", "stage"),
    [
        (False, OpenWork(streams=3, taking=True), "serving"),
        (True, OpenWork(taking=True), "settling"),
        (True, OpenWork(requests=1), "draining"),
        (True, OpenWork(background=1), "draining"),
        (True, OpenWork(silent=("1-7",)), "draining"),
        (True, OpenWork(), "drained"),
    ],
)
async def test_the_stage_follows_from_what_is_open(
    aside: bool, open_: OpenWork, stage: str
) -> None:
    world = World()
    world.server.aside, world.open = aside, open_
    view = await world.draining.draining("a")
    assert (view.name, view.boot, view.stage) == ("a", 7, stage)
    assert (view.work, view.duties, view.patience_s) == (open_, Duties(workers=4), 185)


async def test_who_was_told_to_stop_is_leaving_whatever_came_before() -> None:
    world = World()
    world.server.aside = True
    world.farewell.leave("test")
    assert (await world.draining.draining("a")).stage == "leaving"


async def test_a_peer_is_answered_in_words_that_it_understands() -> None:
    world = World()
    world.open = OpenWork(1, 2)
    answer = await world.mesh.replies[DRAIN](b"", "b")
    assert msgspec.msgpack.decode(answer, type=DrainView).work == OpenWork(1, 2)


async def test_the_dead_and_those_who_left_are_not_asked() -> None:
    world = World()
    world.mesh.rows.append(member_view("d", "left"))
    assert (await world.draining.draining("c")).stage == "dead"
    assert (await world.draining.draining("d")).stage == "left"
    with pytest.raises(SmgError) as caught:
        await world.draining.draining("x")
    assert caught.value.code == "member_not_found"
    assert world.mesh.calls == []


@pytest.mark.parametrize("words", [b"", b"\xc1", b"\x90", b'{"name": 1}'])
async def test_words_that_nobody_understands_are_no_answer(
    words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()

    async def ask(*_: Any, **__: Any) -> bytes:
        return words

    monkeypatch.setattr(world.mesh, "ask", ask)
    with pytest.raises(SmgError, match="understood"):
        await world.draining.draining("b")


async def test_a_member_that_lives_and_is_silent_is_not_called_empty() -> None:
    world = World()
    world.mesh.wrong["ask"] = AskError("timeout", "no answer")
    with pytest.raises(SmgError) as caught:
        await world.draining.draining("b")
    assert (caught.value.status, caught.value.code) == (504, "member_silent")
