import asyncio
from dataclasses import replace
from typing import Any

import pytest

from smg_mesh.mesh import AskError, KeyringReport, MeshError
from smg_node.cluster.membership.cluster_service import ASIDE, FORGET, ClusterService
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.core.errors import ErrorKind, SmgError
from support.http.http_node import node
from support.mesh.fake_mesh import FakeMesh, member_view


class _Server:
    """As much of a server as a farewell sees."""

    def __init__(self) -> None:
        from smg_node.http.middleware.drain_phases import Phase

        self.phase = Phase.SERVING
        self.aside = False

    def set_aside(self, *, on: bool) -> None:
        self.aside = on


def desk() -> tuple[ClusterService, FakeMesh, Shutdown]:
    mesh, farewell = FakeMesh(), Shutdown()
    farewell.server = _Server()  # type: ignore[assignment]  # as much of one as it needs
    return ClusterService(mesh, farewell), mesh, farewell


async def refused(wish: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        await wish
    return caught.value


async def test_the_card_says_how_the_cluster_looks_from_here() -> None:
    front, _, farewell = desk()
    card = front.card()
    assert (card.label, card.node, card.address) == ("blue", "a", "10.0.0.1:7946")
    assert (card.security, card.joined, card.drained, card.leaving) == (
        "encrypted", True, False, False,
    )  # fmt: skip
    assert card.members == {"alive": 2, "suspect": 0, "dead": 1, "left": 0}
    assert card.seeds == [{"peer": "b:7946"}, {"peer": "nowhere", "error": "no such host"}]
    farewell.leave("test")
    assert front.card().leaving


async def test_a_mesh_without_keys_is_called_insecure() -> None:
    front, mesh, _ = desk()
    mesh.state = replace(mesh.state, encrypted=False, keys=())
    assert front.card().security == "insecure"


async def test_members_are_rows_by_name() -> None:
    front, mesh, _ = desk()
    mesh.rows.append(member_view("0", "suspect", accuser="b"))
    assert [row.name for row in front.members()] == ["0", "a", "b", "c"]
    row = front.member("0")
    assert (row.state, row.accuser, row.lag_ms, row.me) == ("suspect", "b", 120, False)
    with pytest.raises(SmgError) as caught:
        front.member("x")
    assert (caught.value.status, caught.value.code) == (404, "member_not_found")


async def test_events_after_an_id_of_another_life_are_all_events() -> None:
    front, mesh, _ = desk()
    for kind in ("joined", "member_up", "member_down"):
        mesh.happen(kind)
    assert [event.id for event in front.events(0)] == [1, 2, 3]
    assert [event.id for event in front.events(2)] == [3]
    assert front.events(3) == []
    assert [event.id for event in front.events(900)] == [1, 2, 3]
    assert [event.id async for event in front.watch(2)] == [3]
    assert [event.kind async for event in front.watch(900)] == [
        "joined",
        "member_up",
        "member_down",
    ]


async def test_seeds_are_handed_on_and_nonsense_is_the_callers_fault() -> None:
    front, mesh, _ = desk()
    front.join(["b:1"])
    assert mesh.calls == [("join", "b:1")]
    mesh.wrong["join"] = ValueError("'x y' is no host name")
    with pytest.raises(SmgError) as caught:
        front.join(["x y"])
    assert (caught.value.kind, caught.value.where) == (ErrorKind.INVALID_REQUEST, "peers")


async def test_this_node_is_set_aside_here_and_tells_everybody() -> None:
    front, mesh, farewell = desk()
    row = await front.set_aside("a", on=True)
    assert farewell.aside
    assert (mesh.meta, row.meta["draining"]) == ({"draining": True}, True)
    await front.set_aside("a", on=False)
    assert not farewell.aside
    assert mesh.meta == {"draining": False}
    assert mesh.calls == []


async def test_another_node_is_asked_and_seen_as_what_it_said() -> None:
    front, mesh, farewell = desk()
    row = await front.set_aside("b", on=True)
    assert mesh.calls == [("ask", "b", ASIDE, b"on")]
    assert (row.name, row.meta["draining"], farewell.aside) == ("b", True, False)
    await front.set_aside("b", on=False)
    assert mesh.calls[-1] == ("ask", "b", ASIDE, b"off")


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        (AskError("timeout", "no answer"), 504, "member_silent"),
        (AskError("member_leaving", "this node is leaving"), 409, "member_leaving"),
        (AskError("unreachable", "nobody there"), 502, "member_refused"),
        (LookupError("gone meanwhile"), 404, "member_not_found"),
    ],
)
async def test_a_member_that_cannot_be_asked_is_not_drained(
    wrong: Exception, status: int, code: str
) -> None:
    front, mesh, _ = desk()
    mesh.wrong["ask"] = wrong
    error = await refused(front.set_aside("b", on=True))
    assert (error.status, error.code) == (status, code)


async def test_the_dead_and_strangers_are_not_asked() -> None:
    front, mesh, _ = desk()
    assert (await refused(front.set_aside("c", on=True))).code == "member_gone"
    assert (await refused(front.set_aside("x", on=True))).code == "member_not_found"
    assert mesh.calls == []


async def test_a_peer_may_set_this_node_aside_unless_it_is_leaving() -> None:
    _, mesh, farewell = desk()
    reply = mesh.replies[ASIDE]
    await reply(b"on", "b")
    assert farewell.aside
    assert mesh.meta == {"draining": True}
    with pytest.raises(AskError) as caught:
        await reply(b"perhaps", "b")
    assert caught.value.code == "invalid"
    farewell.leave("test")
    with pytest.raises(AskError) as caught:
        await reply(b"off", "b")
    assert caught.value.code == "member_leaving"
    assert farewell.aside


async def test_the_dead_are_forgotten_by_the_others_first() -> None:
    front, mesh, _ = desk()
    mesh.rows.append(member_view("d", "suspect"))
    assert await front.forget("c") == {"a": "ok", "b": "ok", "d": "ok"}
    assert sorted(call[1] for call in mesh.calls[:2]) == ["b", "d"]
    assert mesh.calls[0][2:] == (FORGET, b"c")
    assert mesh.calls[-1] == ("forget", "c")


async def test_forgetting_says_who_did_not() -> None:
    front, mesh, _ = desk()
    mesh.wrong["ask"] = AskError("timeout", "no answer")
    assert await front.forget("c") == {"a": "ok", "b": "b: no answer"}
    assert (await refused(front.forget("b"))).code == "member_not_gone"
    assert (await refused(front.forget("x"))).code == "member_not_found"


async def test_a_peer_may_let_this_node_forget_only_who_is_gone() -> None:
    _, mesh, _ = desk()
    reply = mesh.replies[FORGET]
    await reply(b"c", "b")
    mesh.wrong["forget"] = LookupError("nobody")
    await reply(b"x", "b")
    mesh.wrong["forget"] = ValueError("b is alive")
    with pytest.raises(AskError, match="b is alive"):
        await reply(b"b", "b")
    await asyncio.sleep(0)
    assert [call[0] for call in mesh.calls] == ["forget", "forget", "forget"]


async def test_the_keyring_is_reported_and_its_refusals_are_told_apart() -> None:
    front, mesh, _ = desk()
    mesh.report = KeyringReport(
        operation="use",
        version=2,
        primary="aabbccdd",
        keys={"aabbccdd": ("a", "b")},
        members={"a": "ok", "b": "ok"},
    )
    view = await front.keyring("use", "aabbccdd", force=True)
    assert mesh.calls == [("keyring", "use", "aabbccdd", True)]
    assert (view.primary, view.keys) == ("aabbccdd", {"aabbccdd": ["a", "b"]})
    mesh.wrong["keyring"] = MeshError("b did not answer")
    assert (await refused(front.keyring("remove", "x", force=False))).status == 409
    mesh.wrong["keyring"] = MeshError("install: neither base64 nor hexadecimal")
    mesh.wrong["keyring"].__cause__ = ValueError("neither base64 nor hexadecimal")
    error = await refused(front.keyring("install", "x", force=False))
    assert (error.status, error.where) == (400, "key")


async def test_a_real_server_is_set_aside_by_its_desk() -> None:
    async with node() as served:
        mesh, farewell = FakeMesh(), Shutdown()
        farewell.server = served.server
        await ClusterService(mesh, farewell).set_aside("a", on=True)
        assert served.server.aside
        assert farewell.draining
