"""Who else is there, as history asks the cluster."""

from typing import Any, cast

import pytest

from smg_node.cluster.history_peers import HistoryPeers
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.history.peers.peer_interface import NoPeers, PeerContact, Peers
from support.http.fake_cluster import FakeCluster, member_row
from support.mesh.fake_mesh import FakeMesh


class Life:
    """A node's part in a cluster, as far as its peers go."""

    def __init__(self, mesh: FakeMesh | None) -> None:
        self.desk = FakeCluster()
        self.mesh = mesh
        self.spooling: list[bool] = []

    def say_spooling(self, *, on: bool) -> None:
        self.spooling.append(on)


def peers_of(mesh: FakeMesh | None) -> tuple[HistoryPeers, FakeCluster]:
    life = Life(mesh)
    return HistoryPeers(cast("Any", life)), life.desk


def test_those_are_gone_that_the_cluster_calls_dead_or_left() -> None:
    peers, cluster = peers_of(FakeMesh())
    states = ("alive", "suspect", "dead", "left")
    cluster.rows = {
        f"n{at}": member_row(f"n{at}", state, since_ms=at) for at, state in enumerate(states)
    }
    cluster.rows["me"] = member_row("me", "left", me=True)
    assert peers.gone() == {"n2": 2, "n3": 3}
    assert peers.known() == {"n0": "alive", "n1": "suspect", "n2": "dead", "n3": "left"}


async def test_members_are_asked_and_answered() -> None:
    mesh = FakeMesh()
    peers, _ = peers_of(mesh)

    async def reply(payload: bytes, caller: str) -> bytes:
        return payload

    peers.answer("history.x", reply)
    assert mesh.replies["history.x"] is reply
    assert await peers.ask("b", "history.x", b"?", deadline_s=1) == b""
    assert ("ask", "b", "history.x", b"?") in mesh.calls


@pytest.mark.parametrize("peers", [NoPeers(), peers_of(None)[0]])
async def test_a_node_alone_has_nobody_to_ask(peers: Peers) -> None:
    async def reply(payload: bytes, caller: str) -> bytes:
        return payload

    peers.answer("history.x", reply)
    with pytest.raises(SmgError) as refused:
        await peers.ask("b", "history.x", b"?", deadline_s=1)
    assert (refused.value.kind, refused.value.code) == (ErrorKind.NOT_FOUND, "member_not_found")


def test_nobody_is_gone_where_nobody_was() -> None:
    assert not NoPeers().gone()
    assert not NoPeers().known()
    assert not NoPeers().spooling()
    assert not NoPeers().heard()


def test_when_others_were_heard_is_told_of_all_who_have_not_left() -> None:
    peers, cluster = peers_of(FakeMesh())
    cluster.rows = {
        "n1": member_row("n1", lag_ms=1_500),
        "n2": member_row("n2", "dead", lag_ms=60_000),
        "n3": member_row("n3", "suspect", lag_ms=None),
        "n4": member_row("n4", "left"),
        "me": member_row("me", me=True, lag_ms=None),
    }
    assert peers.heard() == {
        "n1": PeerContact("alive", 1.5),
        "n2": PeerContact("dead", 60.0),
        "n3": PeerContact("suspect", float("inf")),
    }


def test_who_has_turns_on_its_disk_says_so() -> None:
    life = Life(FakeMesh())
    peers = HistoryPeers(cast("Any", life))
    life.desk.rows = {
        "n1": member_row("n1", meta={"spooled": True}),
        "n2": member_row("n2", "dead", meta={"spooled": True}),
        "n3": member_row("n3", meta={"spooled": False}),
        "n4": member_row("n4", meta={}),
        "me": member_row("me", me=True, meta={"spooled": True}),
    }
    assert peers.spooling() == {"n1": "alive", "n2": "dead"}
    peers.say_spooling(on=True)
    assert life.spooling == [True]
