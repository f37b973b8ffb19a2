from typing import Any

import pytest
from msgspec.structs import replace

from support.http.fake_cluster import CARD
from support.http.http_node import node
from support.http.raw_http import ask


async def test_the_cluster_is_shown_as_this_node_sees_it() -> None:
    async with node() as served:
        body = (await ask(served.port, "GET", "/v1/cluster")).json()
    assert (body["node"], body["label"], body["security"]) == ("node-a", "default", "encrypted")
    assert body["members"] == {"alive": 2, "suspect": 0, "dead": 1, "left": 0}
    assert body["seeds"][1] == {"peer": "nowhere:7946", "error": "no such host"}


async def test_members_are_listed_whole_or_by_state() -> None:
    async with node() as served:
        listed = (await ask(served.port, "GET", "/v1/cluster/members")).json()
        dead = (await ask(served.port, "GET", "/v1/cluster/members?state=dead")).json()
        one = (await ask(served.port, "GET", "/v1/cluster/members/b")).json()
        none = await ask(served.port, "GET", "/v1/cluster/members/x")
    assert listed["node"] == "node-a"
    assert [row["name"] for row in listed["members"]] == ["b", "c", "node-a"]
    assert [row["name"] for row in dead["members"]] == ["c"]
    fields = {"state", "address", "boot", "incarnation", "rtt_ms", "lag_ms", "since_ms", "meta"}
    assert fields <= set(one)
    assert (one["state"], one["lag_ms"], one["meta"]) == ("alive", 120, {"version": "1.2.3"})
    assert (none.status, none.error()["code"]) == (404, "member_not_found")


async def test_peers_are_looked_for_from_now_on() -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", "/v1/cluster/join", {"peers": ["b:1", "c"]})
        assert served.cluster.calls == [("join", ["b:1", "c"])]
    assert answer.status == 202
    assert answer.json() == {"status": "accepted", "peers": ["b:1", "c"]}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "peers"),
        ({"peers": []}, "peers"),
        ({"peers": "b:1"}, "peers"),
        ({"peers": ["b:1", 5]}, "peers[1]"),
        ({"peers": ["x" * 400]}, "peers[0]"),
        ({"peers": ["b"] * 257}, "peers"),
        ({"peers": ["nonsense"]}, "peers"),
        ({"peers": ["b"], "seeds": []}, "seeds"),
    ],
)
async def test_bad_peers_are_refused_by_the_name_of_what_is_wrong(
    body: dict[str, Any], param: str
) -> None:
    async with node() as served:
        refused = await ask(served.port, "POST", "/v1/cluster/join", body)
        assert served.cluster.calls == []
    assert (refused.status, refused.error()["param"]) == (400, param)


async def test_a_node_is_asked_to_leave() -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", "/v1/cluster/leave")
        assert served.cluster.calls == [("leave",)]
    assert (answer.status, answer.json()) == (202, {"status": "leaving", "node": "node-a"})


async def test_a_member_is_drained_undrained_and_forgotten() -> None:
    async with node() as served:
        port = served.port
        drained = await ask(port, "POST", "/v1/cluster/members/b/drain")
        undrained = await ask(port, "POST", "/v1/cluster/members/b/undrain")
        gone = await ask(port, "POST", "/v1/cluster/members/c/drain")
        nobody = await ask(port, "POST", "/v1/cluster/members/x/undrain")
        alive = await ask(port, "POST", "/v1/cluster/members/b/forget")
        forgotten = await ask(port, "POST", "/v1/cluster/members/c/forget")
    assert drained.json()["meta"] == {"draining": True}
    assert undrained.json()["meta"] == {"draining": False}
    assert (gone.status, gone.error()["code"]) == (409, "member_gone")
    assert gone.headers["x-should-retry"] == "false"
    assert nobody.status == 404
    assert (alive.status, alive.error()["code"]) == (409, "member_not_gone")
    assert forgotten.json() == {"name": "c", "members": {"b": "no answer", "node-a": "ok"}}


async def test_the_keyring_is_listed_and_changed() -> None:
    change = {"operation": "remove", "key": " 0123abcd\n", "force": True}
    async with node() as served:
        listed = (await ask(served.port, "GET", "/v1/cluster/keyring")).json()
        changed = await ask(served.port, "POST", "/v1/cluster/keyring", change)
        refused = await ask(
            served.port, "POST", "/v1/cluster/keyring", {"operation": "remove", "key": "aa"}
        )
        bad = await ask(
            served.port, "POST", "/v1/cluster/keyring", {"operation": "install", "key": "short"}
        )
        assert served.cluster.calls[:2] == [("list", "", False), ("remove", "0123abcd", True)]
    key = {"fingerprint": "aabbccdd", "primary": True, "members": ["b", "node-a"]}
    assert listed == {"primary": "aabbccdd", "keys": [key], "members": {"b": "ok", "node-a": "ok"}}
    assert changed.status == 200
    assert (refused.status, refused.error()["code"]) == (409, "keyring_refused")
    assert (bad.status, bad.error()["param"]) == (400, "key")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "operation"),
        ({"operation": "list", "key": "a"}, "operation"),
        ({"operation": "use"}, "key"),
        ({"operation": "use", "key": ""}, "key"),
        ({"operation": "use", "key": "a" * 200}, "key"),
        ({"operation": "use", "key": "a", "force": 1}, "force"),
        ({"operation": "use", "key": "a", "farce": True}, "farce"),
    ],
)
async def test_a_bad_change_of_the_keyring_is_refused(body: dict[str, Any], param: str) -> None:
    async with node() as served:
        refused = await ask(served.port, "POST", "/v1/cluster/keyring", body)
        assert served.cluster.calls == []
    assert (refused.status, refused.error()["param"]) == (400, param)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/cluster"),
        ("GET", "/v1/cluster/members"),
        ("GET", "/v1/cluster/events"),
        ("GET", "/v1/cluster/keyring"),
        ("POST", "/v1/cluster/leave"),
        ("POST", "/v1/cluster/members/b/drain"),
    ],
)
async def test_strangers_neither_see_nor_move_the_cluster(method: str, path: str) -> None:
    async with node() as served:
        refused = await ask(served.port, method, path, headers={"x-forwarded-for": "1.2.3.4"})
        assert served.cluster.calls == []
    assert refused.status == 403


async def test_a_degraded_node_is_ready_and_says_what_is_wrong() -> None:
    async with node() as served:
        well = (await ask(served.port, "GET", "/readiness")).json()
        served.health.state = replace(served.health.state, degraded=("it hears nobody",))
        degraded = await ask(served.port, "GET", "/readiness")
        cluster = await ask(served.port, "GET", "/v1/cluster")
    assert "degraded" not in well
    assert degraded.status == 200
    assert degraded.json()["degraded"] == ["it hears nobody"]
    assert cluster.json()["degraded"] == [*CARD.degraded, "it hears nobody"]


async def test_what_a_card_cannot_know_yet_is_still_there() -> None:
    async with node() as served:
        served.cluster.state = replace(CARD, security="alone", joined=False, keys=())
        body = (await ask(served.port, "GET", "/v1/cluster")).json()
    assert (body["security"], body["joined"], body["keys"]) == ("alone", False, [])
