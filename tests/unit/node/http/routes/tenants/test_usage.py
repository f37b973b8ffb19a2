"""What requests used, over HTTP: everybody's for operators, its own for a tenant, and every refusal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from smg_node.admission.usage.tool_usage import ToolUsage
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask
from support.http.request_usage import outcome

ALL = "/v1/cluster/usage"
OWN = "/v1/usage"
KEYS = "/v1/cluster/keys"


@asynccontextmanager
async def used() -> AsyncIterator[Node]:
    async with node() as served:
        for tenant, model in (("acme", "m"), ("acme", "n"), ("beta", "m")):
            served.usage.record(outcome(tenant, model, f"key-{tenant}"))
        served.usage.record(outcome("acme", "m", kind="refused", status=429))
        yield served


async def get(served: Node, path: str, key: str = "") -> Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return await ask(served.port, "GET", path, headers=headers)


async def made(served: Node, key: str = "", **wish: str) -> str:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    response = await ask(served.port, "POST", KEYS, wish, headers)
    assert response.status == 201, response.body
    text: str = response.json()["key"]
    return text


def tenants(response: Response) -> dict[Any, int]:
    assert response.status == 200, response.body
    return {row["tenant"]: row["requests"] for row in response.json()["rows"]}


async def test_an_operator_sees_what_everybody_used_in_the_last_day() -> None:
    async with used() as served:
        now = datetime.now(UTC)
        said = (await get(served, ALL)).json()
    assert said["by"] == ["tenant", "model"]
    counts = {
        "requests": 1,
        "refused": 0,
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "completion_tokens": 5,
        "cost_micro": 0,
        "cache_write_tokens": 0,
        "calls": 0,
        "unpriced_calls": 0,
        "estimated_calls": 0,
        "tool_runs": 0,
        "failed_tool_runs": 0,
        "tool_ms": 0,
        "tool_bytes": 0,
    }
    assert said["rows"] == [
        {"tenant": "acme", "model": "m", **counts, "refused": 1},
        {"tenant": "acme", "model": "n", **counts},
        {"tenant": "beta", "model": "m", **counts},
    ]
    assert said["total"] == {
        "requests": 3,
        "refused": 1,
        "prompt_tokens": 30,
        "cached_tokens": 12,
        "completion_tokens": 15,
        "cost_micro": 0,
        "cache_write_tokens": 0,
        "calls": 0,
        "unpriced_calls": 0,
        "estimated_calls": 0,
        "tool_runs": 0,
        "failed_tool_runs": 0,
        "tool_ms": 0,
        "tool_bytes": 0,
    }
    first, end = (datetime.fromisoformat(said[name]) for name in ("from", "to"))
    assert first < now <= end
    assert (end - first).total_seconds() == 86_400
    # The members of this surface's cluster do not speak of usage.
    assert (said["node"], said["exact"], said["cut"]) == ("node-a", False, 0)
    assert set(said["silent"]) == {"b", "c"}


async def test_rows_and_hours_are_those_that_are_asked_for() -> None:
    async with used() as served:
        assert tenants(await get(served, f"{ALL}?by=tenant")) == {"acme": 2, "beta": 1}
        assert tenants(await get(served, f"{ALL}?by=tenant&tenant=beta")) == {"beta": 1}
        assert tenants(await get(served, f"{ALL}?by=tenant,hour&model=n")) == {"acme": 1}
        assert tenants(await get(served, f"{ALL}?by=tenant&key=key-beta&from=7d")) == {"beta": 1}
        assert tenants(await get(served, f"{ALL}?by=tenant&from=9d&to=1d")) == {}
        hours = (await get(served, f"{ALL}?by=hour")).json()
        days = (await get(served, f"{ALL}?by=day,day")).json()
        (hour,) = hours["rows"]
        (day,) = days["rows"]
        assert hour["hour"].startswith(day["day"])
        assert set(day) == {"day", *days["total"]}
        lately = (datetime.now(UTC) - timedelta(days=2)).date().isoformat()
        zoned = f"from={lately}T03:04:05%2B01:00&to={lately}T03:00:01"
        said = (await get(served, f"{ALL}?{zoned}")).json()
        assert (said["from"], said["to"]) == (f"{lately}T02:00Z", f"{lately}T04:00Z")


@pytest.mark.parametrize(
    "query", ["from=1h&to=2h", "from=2199-01-01", "from=9999-12-31T23:59:59Z", "to=1970-01-01"]
)
async def test_what_begins_after_its_end_has_no_hours_and_sums_of_nothing(query: str) -> None:
    async with used() as served:
        response = await get(served, f"{ALL}?{query}")
    said = response.json()
    assert response.status == 200
    assert (said["rows"], said["total"]["requests"]) == ([], 0)
    assert said["from"] == said["to"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("by=colour", "by"),
        ("by=tenant,", "by"),
        ("from=yesterday", "from"),
        ("from=0d", "from"),
        ("from=99999999d", "from"),
        ("to=2026-13-01", "to"),
        ("from=", "from"),
        ("to=", "to"),
        (f"tenant={'x' * 257}", "tenant"),
        (f"model={'x' * 257}", "model"),
    ],
)
async def test_what_cannot_be_understood_is_refused_by_its_name(query: str, param: str) -> None:
    async with used() as served:
        response = await get(served, f"{ALL}?{query}")
    assert response.status == 400
    assert response.json()["error"]["param"] == param


async def test_a_tenant_sees_its_own_and_nobody_elses() -> None:
    async with used() as served:
        admin = await made(served, role="admin")
        acme = await made(served, admin, tenant="acme")
        operator = await made(served, admin, role="operator")
        said = (await get(served, OWN, acme)).json()
        assert {row["model"]: row["requests"] for row in said["rows"]} == {"m": 1, "n": 1}
        assert said["total"]["refused"] == 1
        for trick in ("tenant=beta", "tenant=beta&by=tenant", "key=key-beta&by=tenant"):
            rows = (await get(served, f"{OWN}?{trick}", acme)).json()["rows"]
            assert {row.get("tenant", "acme") for row in rows} <= {"acme"}
        statuses = {
            path: [(await get(served, path, key)).status for key in ("", acme, operator, admin)]
            for path in (OWN, ALL)
        }
    assert statuses == {OWN: [401, 200, 403, 403], ALL: [401, 403, 200, 200]}


async def test_runs_of_tools_are_summed_up_for_operators_and_for_who_pays_for_them() -> None:
    async with used() as served:
        tools = ToolUsage(served.usage)
        for tenant, tool in (("acme", "web"), ("acme", "images"), ("beta", "web")):
            who = (tenant, f"key-{tenant}", "search", tool)
            tools.ran(*who, "ok", seconds=1.5, answer_bytes=900, price="0.005")
        admin = await made(served, role="admin")
        acme = await made(served, admin, tenant="acme")
        answers = [
            (await get(served, path, key)).json()
            for path, key in (
                (f"{ALL}?by=tool&server=search", admin),
                (f"{ALL}?by=server,tenant&tool=search/web", admin),
                (f"{OWN}?by=tool", acme),
                (f"{OWN}?by=server,tool&tool=search/web", acme),
            )
        ]
    runs = [
        [
            (*(row[name] for name in said["by"]), row["tool_runs"], row["cost_micro"])
            for row in said["rows"]
        ]
        for said in answers
    ]
    assert runs == [
        [("search/images", 1, 5_000), ("search/web", 2, 10_000)],
        [("acme", "search", 1, 5_000), ("beta", "search", 1, 5_000)],
        [("", 0, 0), ("search/images", 1, 5_000), ("search/web", 1, 5_000)],
        [("search", "search/web", 1, 5_000)],
    ]
    total = answers[0]["total"]
    assert (total["tool_ms"], total["tool_bytes"], total["failed_tool_runs"]) == (4_500, 2_700, 0)
    assert answers[2]["total"]["requests"] == 2


async def test_without_any_key_nobody_has_usage_of_its_own() -> None:
    async with used() as served:
        response = await get(served, OWN)
        assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
        away = {"x-forwarded-for": "10.0.0.9"}
        assert (await ask(served.port, "GET", ALL, headers=away)).status == 403
