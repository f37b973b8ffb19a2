"""What all nodes count, over HTTP: for operators, by name, and who tells nothing has a line too."""

from typing import Any

import pytest

from smg_node.http.query_bounds import METRIC_NAMES_MAX
from smg_node.telemetry.metrics.cluster_metrics import WATCHED
from smg_node.telemetry.metrics.declared.node import METRICS
from support.http.http_node import Node, node
from support.http.raw_http import ask

PATH = "/v1/cluster/metrics"
CHATS = "smg_node_http_requests_total"


async def get(served: Node, query: str = "") -> Any:
    response = await ask(served.port, "GET", f"{PATH}{query}")
    assert response.status == 200, response.body
    return response.json()


async def test_every_member_has_a_line_and_those_that_tell_have_numbers() -> None:
    async with node() as served:
        said = await get(served)
    assert said["node"] == "node-a"
    assert set(said["metrics"]) == {metric.name for metric in WATCHED}
    by_name = {one["name"]: one for one in said["nodes"]}
    assert by_name["node-a"]["me"]
    assert by_name["node-a"]["silent"] == ""
    assert by_name["node-a"]["rows"]["smg_node_http_requests_inflight"][0]["values"] == [1]
    others = [one for name, one in by_name.items() if name != "node-a"]
    assert others
    assert all(one["silent"] and "rows" not in one for one in others)
    assert {one["silent"] for one in others if one["state"] == "dead"} == {"it is dead"}


async def test_any_metric_can_be_asked_for_by_name() -> None:
    async with node() as served:
        await get(served)
        said = await get(served, f"?names={CHATS},smg_node_build_info")
    assert list(said["metrics"]) == ["smg_node_build_info", CHATS]
    assert said["metrics"][CHATS]["labels"] == ["route", "method", "status"]
    (here,) = [one for one in said["nodes"] if one["me"]]
    assert here["rows"][CHATS] == [{"labels": [PATH, "GET", "200"], "values": [1]}]
    assert here["rows"]["smg_node_build_info"] == [{"labels": ["1.2.3"], "values": [1]}]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("smg_node_workerz", "there is no metric 'smg_node_workerz'; did you mean"),
        (
            ",".join(f"x{at}" for at in range(METRIC_NAMES_MAX + 1)),
            f"names has more than {METRIC_NAMES_MAX}",
        ),
        ("x" * 20_000, f"names has more than {METRIC_NAMES_MAX}"),
    ],
)
async def test_what_there_is_not_is_refused_by_name(names: str, message: str) -> None:
    async with node() as served:
        response = await ask(served.port, "GET", f"{PATH}?names={names}")
    assert response.status in (400, 414, 431), response.body
    assert response.status != 400 or message in response.json()["error"]["message"]


async def test_all_metrics_can_be_asked_for_at_once() -> None:
    names = [metric.name for metric in METRICS]
    async with node() as served:
        said = await get(served, f"?names={','.join(names)}")
    assert len(said["metrics"]) == len(names)
