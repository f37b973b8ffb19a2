"""`smg-admin usage` against the real routes: what an operator types and reads."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from smg_node.admission.usage.tool_usage import RunOutcome, ToolUsage
from smg_node.core.prices.price_list import PriceList
from support.http.admin_api import RunAdmin, admin_api
from support.http.http_node import Node, node
from support.http.request_usage import flat, outcome


def typed(run: RunAdmin, served: Node) -> Callable[..., Awaitable[tuple[int, str, str]]]:
    async def command(*words: str) -> tuple[int, str, str]:
        where = f"http://127.0.0.1:{served.port}"
        return await asyncio.to_thread(run, "--url", where, "usage", *words)

    return command


async def test_what_was_used_is_a_table_with_a_total(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        nothing = await admin()
        served.usage.retune(PriceList({"m": flat(1_000.0, 1_000.0, 2_000.5)}))
        served.usage.record(outcome())
        served.usage.record(outcome("beta", "n"))
        served.usage.record(outcome("beta", "n", kind="refused", status=429))
        shown = await admin("--since", "7d")
        one = await admin("--tenant", "beta", "--by", "tenant")
    assert nothing[:2] == (0, "Nothing was used.\n")
    rows = [line.split() for line in shown[1].splitlines()]
    assert rows == [
        ["TENANT", "MODEL", "REQUESTS", "REFUSED", "PROMPT", "CACHED", "ANSWER", "COST"],
        ["acme", "m", "1", "0", "10", "4", "5", "0.020002"],
        ["beta", "n", "1", "1", "10", "4", "5", "0"],
        ["TOTAL", "-", "2", "1", "20", "8", "10", "0.020002"],
    ]
    assert one[1].splitlines()[1].split() == ["beta", "1", "1", "10", "4", "5", "0"]
    assert len(one[1].splitlines()) == 2, "one row is its own total"
    assert "NOT exact: c is not counted: it is dead" in shown[2]


async def test_runs_of_tools_have_columns_where_there_are_any(run: RunAdmin) -> None:
    async with node() as served:
        admin = typed(run, served)
        served.usage.record(outcome())
        tools = ToolUsage(served.usage)
        outcomes: tuple[RunOutcome, ...] = ("ok", "tool_error")
        for outcome_of in outcomes:
            who = ("acme", "k1", "search", "web")
            tools.ran(*who, outcome_of, seconds=0.75, answer_bytes=1_000, price="0.0125")
        shown = await admin("--by", "tool,tenant")
        one = await admin("--by", "server", "--tool", "search/web")
    rows = [line.split() for line in shown[1].splitlines()]
    counts = ["REQUESTS", "REFUSED", "PROMPT", "CACHED", "ANSWER"]
    assert rows == [
        ["TENANT", "TOOL", *counts, "RUNS", "FAILED", "SECONDS", "BYTES", "COST"],
        ["acme", "-", "1", "0", "10", "4", "5", "0", "0", "0.0", "0", "0"],
        ["acme", "search/web", "0", "0", "0", "0", "0", "2", "1", "1.5", "2000", "0.025"],
        ["TOTAL", "-", "1", "0", "10", "4", "5", "2", "1", "1.5", "2000", "0.025"],
    ]
    assert one[1].splitlines()[1].split()[0] == "search"
    assert len(one[1].splitlines()) == 2


async def test_scripts_get_what_the_node_says(run: RunAdmin) -> None:
    async with node() as served:
        served.usage.record(outcome())
        code, out, err = await typed(run, served)("--by", "key,hour", "--json")
    said = json.loads(out)
    assert (code, err, said["by"]) == (0, "", ["hour", "key"])
    assert said["rows"][0]["key"] == "k1"


async def test_what_the_node_does_not_understand_is_said(run: RunAdmin) -> None:
    async with node() as served:
        code, out, err = await typed(run, served)("--by", "colour")
    assert (code, out) == (1, "")
    assert "by has 'colour' in it; it may have hour, day, tenant, key, model" in err


def test_only_what_was_typed_is_asked_for(run: RunAdmin) -> None:
    empty = {"by": ["model"], "rows": [], "total": {}, "silent": {}, "cut": 0}
    with admin_api(lambda asked: (200, empty)) as api:
        run("--url", api.url, "usage", "--key-id", "k7", "--until", "1d", "--by", "model")
    (asked,) = api.asked
    assert asked.path == "/v1/cluster/usage?key=k7&from=24h&to=1d&by=model"
