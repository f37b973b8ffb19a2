from support.http.http_node import node
from support.http.raw_http import ask
from support.state.fake_shared_state import FakeNamespaceState

STATE = "/v1/cluster/state"


async def test_the_replicated_state_is_shown_by_namespace() -> None:
    async with node() as served:
        whole = (await ask(served.port, "GET", STATE)).json()
        one = (await ask(served.port, "GET", f"{STATE}/settings")).json()
        none = await ask(served.port, "GET", f"{STATE}/nonsense")
    assert (whole["node"], whole["held"], whole["members"]) == ("node-a", True, {})
    assert whole["digest"] == "0123456789abcdef"
    assert [row["name"] for row in whole["namespaces"]] == ["settings", "workers"]
    assert one["namespace"] == whole["namespaces"][0]
    assert one["namespace"] == {
        "name": "settings",
        "digest": "00ff",
        "entries": 1,
        "bytes": 64,
        "documents": 1,
        "epoch": 0,
    }
    assert (none.status, none.error()["code"]) == (404, "namespace_not_found")


async def test_every_living_member_is_compared_with() -> None:
    async with node() as served:
        served.world.desks("b")
        same = (await ask(served.port, "GET", f"{STATE}?peers=true")).json()["members"]
        served.world.nodes["b"].states["workers"] = FakeNamespaceState("ffff")
        differ = (await ask(served.port, "GET", f"{STATE}?peers=true")).json()["members"]
        settings = (await ask(served.port, "GET", f"{STATE}/settings?peers=true")).json()
        workers = (await ask(served.port, "GET", f"{STATE}/workers?peers=true")).json()
    assert same == {"b": {"same": True, "differs": [], "error": ""}}
    assert differ == {"b": {"same": False, "differs": ["workers"], "error": ""}}
    assert settings["members"]["b"]["same"] is True
    assert workers["members"]["b"]["same"] is False


async def test_a_sticky_placement_is_shown_and_ended() -> None:
    path = "/v1/cluster/sessions/key-1?model=m"
    async with node() as served:
        shown = (await ask(served.port, "GET", path)).json()
        ended = (await ask(served.port, "DELETE", path)).json()
        gone = await ask(served.port, "GET", path)
        row = served.world.rows[-1]
    assert (shown["worker"], shown["node"], shown["why"]) == ("w-1", "b", "least_load")
    assert ended == {"status": "ended", "session": shown}
    assert (gone.status, gone.error()["code"]) == (404, "session_not_found")
    assert (row.action, row.subject, row.before["worker"]) == ("session.end", shown["id"], "w-1")
