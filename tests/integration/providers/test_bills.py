"""Dollars of two real nodes in front of stand-ins that bill by their own reckoning: accounts equal bills, budgets hold.

The stand-ins know tokens, cache writes, tiers, steps and prices of their own; nothing of the node's price rule is theirs.
"""

import http.client
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node, smg_admin
from support.processes.node_api import call
from support.providers.stand_ins import KEY, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

CLAUDE, GPT = "claude-sonnet-4-5", "gpt-5.6-sol"
STEP = 4_000
LONG = "one of many words in a long prompt " * 200
RATES = ("prompt", "cached", "written", "written_long", "answer")
PRICES: dict[str, dict[str, Any]] = {
    f"ant/{CLAUDE}": dict(zip(RATES, (3.141593, 0.314159, 3.926991, 6.283185, 15.707963), strict=True)),
    f"spare/{CLAUDE}": dict(zip(RATES, (2.718282, 0.271828, 3.397852, 5.436564, 13.591409), strict=True)),
    f"oai/{GPT}": {
        **dict(zip(RATES, (4.000001, 0.4, 5, 5, 20), strict=True)),
        "steps": [{"above": STEP, **dict(zip(RATES, (8, 0.8, 10, 10, 30), strict=True))}],
        "tiers": {"flex": dict(zip(RATES, (2, 0.2, 2.5, 2.5, 10.000003), strict=True))},
    },
}  # fmt: skip
STAND_INS = {
    "ant": (f"{CLAUDE}=3141593,314159,3926991,6283185,15707963",),
    "spare": (f"{CLAUDE}=2718282,271828,3397852,5436564,13591409",),
    "oai": (
        f"{GPT}=4000001,400000,5000000,5000000,20000000",
        f"{GPT}>{STEP}=8000000,800000,10000000,10000000,30000000",
        f"{GPT}@flex=2000000,200000,2500000,2500000,10000003",
    ),
}
KINDS = {"ant": "anthropic", "spare": "anthropic", "oai": "openai"}


@dataclass
class World:
    """Nodes of one mesh, and the stand-ins of their providers by name."""

    nodes: tuple[MeshNode, MeshNode]
    vendors: Mapping[str, StandIn]

    def put(self, path: str, body: Any) -> None:
        answer = call(self.nodes[0], "PUT", f"/v1/cluster/{path}", body, {"if-match": "*"})
        assert answer.status == 200, answer

    def fault(self, name: str, *specs: str) -> None:
        self.vendors[name].admin("/faults", {"faults": list(specs)}, "PUT")

    def bills(self) -> dict[str, tuple[int, int]]:
        """Micro-dollars, and calls, by provider, as the stand-ins have it."""
        told = {name: vendor.admin("/bill") for name, vendor in self.vendors.items()}
        return {
            name: (bill["micro_dollars"], sum(row["requests"] for row in bill["rows"]))
            for name, bill in told.items()
            if bill["rows"]
        }

    def accounts(self) -> dict[str, tuple[int, int]]:
        """The same as the nodes have it."""
        said = self.nodes[1].get("/v1/cluster/usage?by=provider")
        assert said["exact"], said
        return {
            row["provider"]: (row["cost_micro"], row["calls"])
            for row in said["rows"]
            if row["provider"]
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("bills")
    key = make_key(folder)
    with ExitStack() as stack:
        vendors = {name: stack.enter_context(_stand_in(folder, name)) for name in STAND_INS}
        a = stack.enter_context(mesh_node(folder / "a", flags_of("a", key=key)))
        # The other one is several processes, which count what they use by themselves.
        flags = [*flags_of("b", key=key, join=[a.mesh]), "--processes", "2"]
        b = stack.enter_context(mesh_node(folder / "b", flags))
        world = World((a, b), vendors)
        for node in world.nodes:
            node.awaits_states(a="alive", b="alive")
            node.awaits_ready()
        _define(world)
        yield world


@contextmanager
def _stand_in(folder: Path, name: str) -> Iterator[StandIn]:
    scratch = folder / f"vendor-{name}"
    scratch.mkdir()
    flags = ["--kind", KINDS[name], "--port", "0", "--model", "*", "--cache", "--key", KEY]
    flags += [word for price in STAND_INS[name] for word in ("--price", price)]
    with running_stand_ins(scratch, *flags) as ((found,), _):
        yield found


def _define(world: World) -> None:
    for name, kind in KINDS.items():
        body: dict[str, Any] = {"kind": kind, "base": world.vendors[name].base, "keys": [KEY]}
        world.put(f"providers/{name}", body)
    broken = {"to": f"spare/{CLAUDE}", "on": ["broken"]}
    world.put("routes/claude", {"targets": [f"ant/{CLAUDE}"]})
    world.put("routes/two", {"targets": [f"ant/{CLAUDE}", broken]})
    world.put("routes/gpt", {"targets": [f"oai/{GPT}"]})
    for name, price in PRICES.items():
        world.put(f"prices/{name}", price)
    for node in world.nodes:
        for model in ("claude", "two", "gpt"):
            node.awaits("served", lambda node=node, model=model: _served(node, model))  # type: ignore[misc]  # bound now
    for vendor in world.vendors.values():
        vendor.admin("/reset", {}, "POST")


def _served(node: MeshNode, model: str) -> bool:
    answer = call(node, "GET", f"/v1/cluster/routes/{model}")
    named = {row["name"] for row in node.get("/v1/cluster/prices")["prices"]}
    return (
        answer.status == 200
        and named >= set(PRICES)
        and all(target["state"] == "ready" for target in answer.body["targets"])
    )


def ask(node: MeshNode, path: str, body: Any) -> tuple[int, bytes]:
    """Return status and body, as much of it as came."""
    where = urlsplit(node.node.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read()
        except http.client.IncompleteRead as cut:
            return answer.status, cut.partial
    finally:
        connection.close()


def message(model: str, text: str, *, stream: bool = False, ttl: str = "") -> tuple[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if ttl:
        content[0]["cache_control"] = {"type": "ephemeral", "ttl": ttl}
    turns = [{"role": "user", "content": [*content, {"type": "text", "text": "words=9"}]}]
    return "/v1/messages", {"model": model, "max_tokens": 99, "messages": turns, "stream": stream}


def chat(model: str, text: str, **more: Any) -> tuple[str, Any]:
    turns = [{"role": "user", "content": f"{text} words=7"}]
    return "/v1/chat/completions", {"model": model, "messages": turns, **more}


WHOLE = [
    message("claude", "short"),
    message("claude", "short", stream=True),
    *(message("claude", LONG, ttl="5m", stream=stream) for stream in (False, True, False)),
    *(message("claude", f"{LONG} again", ttl="1h", stream=stream) for stream in (True, False)),
    chat("claude", "translated", max_tokens=50),
    chat("claude", "translated", max_tokens=50, stream=True),
    chat("gpt", "short"),
    chat("gpt", "short", stream=True),
    chat("gpt", "short", service_tier="flex"),
    chat("gpt", "short", service_tier="flex", stream=True),
    chat("gpt", "short", service_tier="priority"),
    chat("gpt", LONG),
    chat("gpt", LONG, stream=True),
    chat("gpt", LONG * 3),
    chat("gpt", LONG * 3, service_tier="flex"),
    message("gpt", "translated too", stream=True),
]


def test_accounts_equal_the_vendors_bills_to_the_micro(world: World) -> None:
    for at, (path, body) in enumerate(WHOLE * 2):
        status, said = ask(world.nodes[at % 2], path, body)
        assert status == 200, said
    # A stream that breaks off in the middle has cost its prompt, cache writes too, and what came of its answer.
    world.fault("ant", "cut:after=6")
    for at, model in enumerate(("claude", "claude", "two")):
        path, body = message(model, f"{LONG} cut {at}", ttl="5m", stream=True)
        ask(world.nodes[at % 2], path, body)
    path, body = chat("claude", "cut", max_tokens=50, stream=True)
    ask(world.nodes[1], path, body)
    # One that breaks off before its first word is answered by another target, and billed by both.
    world.fault("ant", "cut:after=2")
    for at, node in enumerate(world.nodes):
        path, body = message("two", f"{LONG} spare {at}", ttl="5m")
        status, said = ask(node, path, {**body, "stream": True})
        assert status == 200, said
    world.fault("ant")
    bills = world.bills()
    assert set(bills) == set(STAND_INS)
    # A call is booked where it ends, which is a moment after its client has the answer.
    world.nodes[0].awaits("all is booked", lambda: _calls(world.accounts()) == _calls(bills))
    assert world.accounts() == bills
    total = world.nodes[0].get("/v1/cluster/usage?by=provider")["total"]
    assert total["unpriced_calls"] == 0
    assert total["estimated_calls"] == 6
    shown = smg_admin("--url", world.nodes[0].node.url, "usage", "--by", "provider,model")
    assert "ant" in shown.out, shown
    with urlopen(f"{world.nodes[0].node.metrics_url}/metrics", timeout=30) as answer:
        metrics = answer.read().decode()
    assert 'smg_node_provider_cost_micro_total{model="two",provider="spare"}' in metrics


def _calls(told: Mapping[str, tuple[int, int]]) -> Mapping[str, int]:
    return {name: calls for name, (_, calls) in told.items()}


def test_a_strict_budget_is_never_exceeded_by_load_on_all_nodes(world: World) -> None:
    budget = 50_000
    url = world.nodes[0].node.url
    # What stands with nodes comes to them over the whole day: here all of it is with the owner.
    flags = ("--cost", "0.05/day", "--mode", "strict", "--standing", "0", "--reserve", "worst_case")
    said = smg_admin("--url", url, "limits", "set", "--scope", "global", *flags)
    assert said.code == 0, said.err
    before = sum(micro for micro, _ in world.bills().values())
    for node in world.nodes:
        node.awaits("limited", lambda node=node: bool(node.get("/v1/cluster/limits")["limits"]))  # type: ignore[misc]  # bound now

    def load(at: int) -> bool:
        node, statuses = world.nodes[at % 2], set[int]()
        for turn in range(60):
            path, body = message("claude", f"turn {turn} of {at}", stream=bool(turn % 2))
            body["max_tokens"] = 20
            status, _ = ask(node, path, body)
            statuses.add(status)
        assert statuses <= {200, 429}, statuses
        return 429 in statuses

    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(load, range(8)))
    spent = sum(micro for micro, _ in world.bills().values()) - before
    assert any(ended)
    assert spent <= budget
    assert spent > budget // 2, "most of it can be spent"
    world.nodes[0].awaits(
        "all is booked", lambda: _calls(world.accounts()) == _calls(world.bills())
    )
    assert world.accounts() == world.bills()


def test_without_a_price_a_limit_on_cost_refuses_and_the_setting_lets_it_through(
    world: World,
) -> None:
    node = world.nodes[0]
    world.put("routes/dear", {"targets": ["spare/claude-opus-4-1"]})
    node.awaits("served", lambda: _served(node, "dear"))
    refused, said = ask(node, *message("dear", "short"))
    assert refused == 403, said
    assert b"nobody has said what" in said
    world.put("settings/admission.unpriced", {"value": "allow"})
    node.awaits("allowed", lambda: ask(node, *message("dear", "short"))[0] != 403)

    def dear() -> list[tuple[int, bool]]:
        rows = node.get("/v1/cluster/usage?by=model")["rows"]
        return [
            (row["cost_micro"], row["unpriced_calls"] == row["calls"])
            for row in rows
            if row["model"] == "dear" and row["calls"]
        ]

    node.awaits("booked", lambda: bool(dear()))
    assert dear() == [(0, True)]
