"""Limits of the cluster over HTTP: set, shown with what is spent, taken away, and every refusal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Held, Minting
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask

LIMITS = "/v1/cluster/limits"
BODY: dict[str, Any] = {
    "amounts": [{"unit": "requests", "amount": 600, "window": "minute"}],
    "concurrency": 8,
    "mode": "strict",
}
KEY = "tenant=acme#requests/60000"


@asynccontextmanager
async def two_nodes() -> AsyncIterator[Node]:
    """One node with an HTTP surface, and `b` that answers it."""
    async with node() as served:
        served.world.desks("b")
        yield served


def match(version: object) -> dict[str, str]:
    return {"if-match": str(version), "content-type": "application/json"}


async def put(
    served: Node, scope: str, body: dict[str, Any] | None = None, version: object = 0
) -> Response:
    where = f"{LIMITS}/{quote(scope, safe='=,/*')}"
    said = BODY if body is None else body
    return await ask(served.port, "PUT", where, said, headers=match(version))


async def get(served: Node, scope: str = "", query: str = "") -> Any:
    return (await ask(served.port, "GET", f"{LIMITS}/{scope}{query}".rstrip("/"))).json()


def report(name: str, **fields: Any) -> Report:
    """What one node says; node-a is the owner."""
    usual: dict[str, Any] = {
        "key": KEY,
        "window": 7,
        "amount": 600,
        "state": "exact",
        "owner": "node-a",
        "term": 3 if name == "node-a" else 0,
        "roster": ("b", "node-a"),
        "roster_version": 2,
        "minted": 300 if name == "node-a" else -1,
        "pool": 100 if name == "node-a" else -1,
        "given": (("b", 150), ("node-a", 50)) if name == "node-a" else (),
        "standing": 150,
        "borrowed": 0,
        "spent": 40,
        "left": 60,
        "debt": 1,
        "not_adopted": (),
    }
    return Report(**{**usual, **fields})


def say(served: Node, name: str, **fields: Any) -> None:
    one = report(name, **fields)
    served.world.nodes[name].rights.reports[one.key] = one


async def test_a_limit_is_set_for_the_whole_cluster_and_shown_with_its_version() -> None:
    async with two_nodes() as served:
        answer = await put(served, "tenant=acme")
        shown = await get(served, "tenant=acme")
        listed = await get(served)
        other = served.world.nodes["b"].limits.rule("tenant=acme")
    view = answer.json()
    assert answer.status == 200
    assert answer.headers["etag"] == f'"{view["version"]}"'
    assert (view["scope"], view["rule"], view["owner"]) == ("tenant=acme", "tenant=acme", "node-a")
    assert view["amounts"] == [
        {"unit": "requests", "amount": 600, "window": "minute", "window_ms": 60_000}
    ]
    assert (view["concurrency"], view["mode"], view["standing"]) == (8, "strict", 0.5)
    assert (view["reserve"], view["on_exhausted"], view["conflicts"]) == ("estimate", "debt", [])
    assert shown["limit"] == view
    assert (listed["node"], listed["limits"], listed["unreadable"]) == ("node-a", [view], [])
    assert other is not None
    assert str(other.version) == view["version"]


@pytest.mark.parametrize(
    ("scope", "canonical"),
    [
        ("global", "global"),
        ("model=org/big,tenant=a", "tenant=a,model=org/big"),
        ("tenant=*", "tenant=*"),
        ("model=a%2Cb", "model=a%2Cb"),
    ],
)
async def test_a_scope_may_be_written_in_any_order(scope: str, canonical: str) -> None:
    async with two_nodes() as served:
        view = (await put(served, scope)).json()
        shown = await get(served, quote(canonical, safe="=,/*"))
    assert view["scope"] == canonical
    assert shown["limit"] == view


async def test_what_is_spent_is_added_up_over_all_nodes() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        say(served, "node-a")
        say(served, "b", spent=10, left=90, debt=0)
        shown = await get(served, "tenant=acme")
    (use,) = shown["uses"]
    assert (use["key"], use["unit"], use["window_ms"]) == (KEY, "requests", 60_000)
    assert (use["window"], use["ends_ms"], use["amount"]) == (7, 480_000, 600)
    assert (use["spent"], use["left"], use["standing"], use["debt"]) == (50, 150, 300, 1)
    assert (use["minted"], use["pool"], use["given"]) == (300, 100, 200)
    assert (use["owner"], use["term"], use["state"]) == ("node-a", 3, "exact")
    assert use["nodes"]["b"] == {
        "window": 7,
        "state": "exact",
        "spent": 10,
        "left": 90,
        "standing": 150,
        "borrowed": 0,
        "debt": 0,
        "given": 150,
    }
    assert (shown["exact"], shown["silent"], shown["cut"]) == (True, {}, 0)
    assert "rows" not in shown


async def test_who_does_not_answer_is_named_and_the_sum_is_not_called_exact() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        say(served, "node-a")
        served.world.meshes["node-a"].silent.add("b")
        shown = await get(served, "tenant=acme")
    assert shown["uses"][0]["spent"] == 40
    assert list(shown["silent"]) == ["b"]
    assert shown["exact"] is False


async def test_a_node_that_has_not_heard_of_the_present_limit_is_named() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        served.world.limits.cut("node-a", "b")
        await put(served, "tenant=acme", {**BODY, "concurrency": 9}, "*")
        say(served, "node-a", not_adopted=("c",))
        say(served, "b")
        shown = await get(served, "tenant=acme")
        served.world.limits.heal()
        say(served, "node-a")
        healed = await get(served, "tenant=acme")
    assert shown["uses"][0]["not_adopted"] == ["b", "c"]
    assert shown["exact"] is False
    assert healed["uses"][0]["not_adopted"] == []
    assert healed["exact"] is True


async def test_without_an_owner_nothing_is_called_exact_and_nothing_is_made_up() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        for name in ("node-a", "b"):
            alone: dict[str, Any] = {"term": 0, "minted": -1, "pool": -1, "given": (), "owner": ""}
            say(served, name, state="standing", **alone)
        shown = await get(served, "tenant=acme")
    (use,) = shown["uses"]
    assert (use["minted"], use["pool"], use["owner"], use["state"]) == (None, None, "", "standing")
    assert use["nodes"]["b"]["given"] is None
    assert shown["exact"] is False


async def test_a_node_in_another_window_is_shown_and_not_counted() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        say(served, "node-a")
        say(served, "b", window=6, spent=500)
        shown = await get(served, "tenant=acme")
    (use,) = shown["uses"]
    assert use["spent"] == 40
    assert use["nodes"]["b"]["spent"] == 500


async def test_the_books_of_all_nodes_are_there_for_whoever_adds_up() -> None:
    held = Held(KEY, 7, "b", 1, 600, 150, 0, ((3, 50),), (), 0, 40, 0, 160, 44)
    minting = Minting(KEY, 7, "node-a", 2, 3, 600, 300, 0, (("b", 1, 50, 0),), 250)
    strange = Held("tenant=other#requests/60000", 7, "b", 1, 600, 0, 0, (), (), 0, 0, 0, 0)
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        served.world.nodes["b"].rights.book = [held, strange]
        served.world.nodes["node-a"].rights.book = [minting]
        rows = (await get(served, "tenant=acme", "?rows=true"))["rows"]
    assert [row["kind"] for row in rows["node-a"]] == ["minting"]
    assert (rows["node-a"][0]["minted"], rows["node-a"][0]["given"]) == (300, [["b", 1, 50, 0]])
    assert len(rows["b"]) == 1
    assert (rows["b"][0]["kind"], rows["b"][0]["spent"], rows["b"][0]["offered"]) == (
        "held",
        40,
        44,
    )


async def test_of_a_rule_for_each_all_that_are_in_use_are_shown_and_one_can_be_asked_for() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=*")
        await put(served, "tenant=vip")
        for tenant in ("x", "y", "vip"):
            key = f"tenant={tenant}#requests/60000"
            say(served, "b", key=key, spent=5)
            served.world.nodes["b"].rights.book.append(
                Held(key, 7, "b", 1, 600, 0, 0, (), (), 0, 5, 0, 0)
            )
        all_of_them = await get(served, "tenant=*")
        one = await get(served, "tenant=x")
        elsewhere = await ask(served.port, "GET", f"{LIMITS}/model=m")
    assert [use["key"] for use in all_of_them["uses"]] == [
        "tenant=x#requests/60000",
        "tenant=y#requests/60000",
    ]
    assert (one["limit"]["scope"], one["limit"]["rule"]) == ("tenant=x", "tenant=*")
    assert one["limit"]["version"] == "0"
    assert [use["key"] for use in one["uses"]] == ["tenant=x#requests/60000"]
    assert (elsewhere.status, elsewhere.error()["code"]) == (404, "limit_not_found")


async def test_a_race_is_lost_with_the_present_limit_in_the_answer() -> None:
    async with two_nodes() as served:
        first = (await put(served, "tenant=acme")).json()
        lost = await put(served, "tenant=acme", {"concurrency": 1}, 0)
        gone = await ask(served.port, "DELETE", f"{LIMITS}/tenant=acme", headers=match('"7"'))
        none = await put(served, "tenant=new", {"concurrency": 1}, 7)
        won = await put(served, "tenant=acme", {"concurrency": 1}, f'"{first["version"]}"')
    for answer in (lost, gone):
        assert (answer.status, answer.error()["code"]) == (409, "stale")
        assert answer.json()["current"] == first
        assert answer.headers["etag"] == f'"{first["version"]}"'
    assert (none.status, none.json()["current"], none.headers["etag"]) == (409, None, '"0"')
    assert (won.status, won.json()["amounts"], won.json()["concurrency"]) == (200, [], 1)


async def test_a_limit_is_taken_away_and_the_one_for_each_counts_again() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=*")
        await put(served, "tenant=vip", {"concurrency": 1})
        gone = await ask(served.port, "DELETE", f"{LIMITS}/tenant=vip", headers=match("*"))
        again = await ask(served.port, "DELETE", f"{LIMITS}/tenant=vip", headers=match("*"))
        both = await ask(served.port, "DELETE", f"{LIMITS}/tenant=*", headers=match("*"))
        left = await get(served)
    assert (gone.status, gone.json()["status"]) == (200, "unset")
    assert gone.json()["limit"]["concurrency"] == 1
    assert gone.json()["now"]["rule"] == "tenant=*"
    assert (again.status, again.error()["code"]) == (404, "limit_not_set")
    assert both.json()["now"] is None
    assert left["limits"] == []


async def test_a_client_must_say_which_version_it_has_seen() -> None:
    async with two_nodes() as served:
        refused = await ask(served.port, "PUT", f"{LIMITS}/global", BODY)
        removal = await ask(served.port, "DELETE", f"{LIMITS}/global")
        assert served.world.nodes["b"].limits.rules() == []
    for answer in (refused, removal):
        assert (answer.status, answer.error()["code"]) == (428, "precondition_required")


@pytest.mark.parametrize(
    ("scope", "body", "param", "said"),
    [
        ("acme", {"concurrency": 1}, "scope", "say tenant="),
        ("model=llama*", {"concurrency": 1}, "scope", "stands alone"),
        ("tenant=a", {}, "amounts", "says nothing"),
        ("tenant=a", {"amount": 5}, "amount", "amounts"),
        (
            "tenant=a",
            {"amounts": [{"unit": "requests", "amount": 5, "window": "month"}]},
            "amounts[0].window",
            "second, minute, hour or day",
        ),
        ("tenant=a", {"concurrency": 1, "mode": "lax"}, "mode", "strict, balanced, available"),
        ("tenant=a", {"concurrency": 1, "standing": 2}, "standing", "from 0 to 1"),
    ],
)
async def test_a_mistake_is_refused_by_its_field_and_nothing_is_written(
    scope: str, body: dict[str, Any], param: str, said: str
) -> None:
    async with two_nodes() as served:
        answer = await put(served, scope, body)
        assert served.world.nodes["node-a"].limits.rules() == []
    assert (answer.status, answer.error()["param"]) == (400, param)
    assert said in answer.error()["message"]


async def test_changes_are_in_the_audit_log() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        await put(served, "tenant=acme", {"concurrency": 1}, "*")
        await ask(served.port, "DELETE", f"{LIMITS}/tenant=acme", headers=match("*"))
        rows = (await ask(served.port, "GET", "/v1/cluster/audit?action=limit")).json()["rows"]
    assert [(row["action"], row["subject"]) for row in rows] == [
        ("limit.unset", "tenant=acme"),
        ("limit.set", "tenant=acme"),
        ("limit.set", "tenant=acme"),
    ]
    assert rows[1]["before"]["concurrency"] == 8
    assert rows[1]["after"]["concurrency"] == 1
    assert (rows[0]["before"]["concurrency"], rows[0]["after"]) == (1, None)


async def test_what_a_newer_node_wrote_is_named_and_can_be_replaced_or_taken_away() -> None:
    async with two_nodes() as served:
        served.world.limits["b"].put("tenant=x", b"\xc1")
        served.world.limits["b"].put("tenant=y", b"\xc1")
        listed = await get(served)
        replaced = await put(served, "tenant=x", {"concurrency": 1}, "*")
        gone = await ask(served.port, "DELETE", f"{LIMITS}/tenant=y", headers=match("*"))
        after = await get(served)
    assert listed["unreadable"] == ["tenant=x", "tenant=y"]
    assert (replaced.status, gone.status) == (200, 200)
    assert after["unreadable"] == []
    assert [row["scope"] for row in after["limits"]] == ["tenant=x"]


async def test_a_document_without_room_is_said_and_nothing_is_lost() -> None:
    async with two_nodes() as served:
        served.world.limits["node-a"].full = lambda _: True
        refused = await put(served, "tenant=x")
    assert (refused.status, refused.error()["code"]) == (503, "state_full")


async def test_what_is_spent_of_all_limits_is_told_at_once_the_fullest_first() -> None:
    async with two_nodes() as served:
        await put(served, "tenant=acme")
        await put(served, "tenant=beta")
        beta = KEY.replace("acme", "beta")
        for name, spent in (("node-a", 100), ("b", 50)):
            reports = served.world.nodes[name].rights.reports
            reports[KEY] = report(name, spent=spent)
            reports[beta] = report(name, key=beta, spent=4 * spent)
        plain = await get(served)
        said = (await ask(served.port, "GET", f"{LIMITS}?use=true")).json()
    assert "uses" not in plain
    assert [one["scope"] for one in said["limits"]] == ["tenant=acme", "tenant=beta"]
    assert [(one["key"], one["spent"]) for one in said["uses"]] == [(beta, 600), (KEY, 150)]
    assert set(said["uses"][0]["nodes"]) == {"node-a", "b"}
    assert (said["cut"], said["silent"]) == (0, {})
