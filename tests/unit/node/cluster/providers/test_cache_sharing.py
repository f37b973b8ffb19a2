"""Plans of requests by caches: made with the first request, from what all nodes know, and told to them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from smg_mesh.shared import CacheRow
from smg_node.cluster.providers.cache_sharing import SharedCachePlans
from smg_node.core.generation.events import Usage
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_context import Asks
from smg_node.pipeline.relay.relay_request import APIS, NATIVE, relayable
from smg_node.providers.account import ProviderAccount
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret
from smg_node.providers.target import CLIENT_KEY_HEADER, VendorTarget
from support.providers.caches.cache_world import Time

CONTEXT = RequestContext("req", 0.0, 9.0, tenant="t")
MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"role": "user", "content": [{"type": "text", "text": "x" * 9_000, **MARK}]}


class Rows:
    """Rows of all nodes, of which only these are told."""

    def __init__(self, *rows: CacheRow) -> None:
        self.told = list(rows)
        self.put_in: list[CacheRow] = []
        self.removed: list[tuple[int, int]] = []
        self.followers: list[Callable[[Sequence[CacheRow]], None]] = []

    def put(self, row: CacheRow) -> None:
        self.put_in.append(row)

    def remove(self, beginning: int, scope: int) -> None:
        self.removed.append((beginning, scope))

    def follow(self, heard: Callable[[Sequence[CacheRow]], None]) -> None:
        heard(self.told)
        self.followers.append(heard)


class Sources:
    def file(self, path: str) -> str:
        raise FileNotFoundError(path)

    def env(self, name: str) -> str | None:
        return None


@dataclass
class Target:
    id: str
    engine: HttpEngine
    labels: Mapping[str, str] = field(default_factory=dict)


class World:
    def __init__(self, rows: Rows) -> None:
        self.time = Time()
        self.rows = rows
        self.plans = SharedCachePlans(rows, self.time.now_ms)
        account = ProviderAccount(
            ProviderSpec("p", "anthropic"),
            ProviderSecrets((Secret("k"),)),
            Sources(),
            self.time,
            lambda _spec, _secrets: None,
        )
        engine = object.__new__(HttpEngine)
        engine.vendor = VendorTarget(account, "claude-sonnet-5", "claude", self.time)
        self.serving = cast("Sequence[Worker]", [Target("w", engine)])

    def plan(self, headers: Mapping[str, str] | None = None) -> CachePlan | None:
        fields: dict[str, Any] = {"model": "claude", "messages": [LONG]}
        asked = relayable(NATIVE["messages"], msgspec.json.encode(fields), fields)
        asks = Asks("messages", streamed=False, headers=headers or {})
        return self.plans.of(self.serving, asked, asks, CONTEXT, "")


def read(plan: CachePlan | None) -> float:
    assert plan is not None
    cost = plan.cost("w", dollar_seconds=0.0, price=None)
    assert cost is not None
    return cost.read


def test_what_others_know_is_known_and_what_this_process_learns_is_told() -> None:
    first = World(Rows())
    plan = first.plan()
    assert read(plan) == 0
    assert plan is not None
    call = plan.call("w")
    call.sent("")
    call.spoke()
    assert first.rows.put_in == []
    call.answered(Usage(2_300, 1, 0, cache_write_tokens=2_300))
    (row,) = first.rows.put_in
    assert row.life_ms == 300_000
    other = World(Rows(row))
    assert read(other.plan()) > 2_000
    (heard,) = other.rows.followers
    heard([CacheRow(row.beginning, row.scope)])
    assert read(other.plan()) == 0


def test_a_state_of_a_newer_release_says_nothing() -> None:
    first = World(Rows())
    plan = first.plan()
    assert plan is not None
    call = plan.call("w")
    call.answered(Usage(2_300, 1, 0, cache_write_tokens=2_300))
    (row,) = first.rows.put_in
    strange = msgspec.structs.replace(row, state=77)
    assert read(World(Rows(strange)).plan()) == 0


def test_a_miss_is_told_as_removed() -> None:
    world = World(Rows())
    for used in (Usage(2_300, 1, 0, cache_write_tokens=2_300), Usage(2_300, 1, 0)):
        plan = world.plan()
        assert plan is not None
        plan.cost("w", dollar_seconds=0.0, price=None)
        plan.call("w").answered(used)
    row = world.rows.put_in[0]
    assert world.rows.removed[0] == (row.beginning, row.scope)


def test_a_clients_own_key_and_an_api_without_answers_have_no_plan() -> None:
    world = World(Rows())
    assert world.plan({CLIENT_KEY_HEADER: "sk-own"}) is None
    fields = {"model": "claude", "input": "text"}
    asked = relayable(APIS["embeddings"], b"{}", fields)
    asks = Asks("embeddings", streamed=False)
    assert world.plans.of(world.serving, asked, asks, CONTEXT, "") is None
