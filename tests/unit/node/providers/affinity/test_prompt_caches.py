"""Plans of requests: which key of an account has a prompt, what a call takes along, and what waiting is worth."""

from typing import Any

import msgspec
import pytest

from smg_node.core.generation.events import Usage
from smg_node.engines.http.vendor_cache import Uncached
from smg_node.providers.account import ProviderAccount
from smg_node.providers.affinity.cache_book import CacheBook
from smg_node.providers.affinity.cache_forecast import Way
from smg_node.providers.affinity.prompt_beginning import beginning_of
from smg_node.providers.affinity.prompt_caches import (
    RATIO_MAX,
    WAIT_MAX_S,
    CachePlan,
    PlannedCall,
    PromptCaches,
)
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret
from smg_node.providers.target import VendorTarget
from support.providers.caches.cache_world import Time

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "x" * 12_000}]}


class Sources:
    def file(self, path: str) -> str:
        raise FileNotFoundError(path)

    def env(self, name: str) -> str | None:
        return None


class World:
    """One account, of two keys, and what a process knows of its caches."""

    def __init__(
        self, kind: str = "openai", keys: tuple[str, ...] = ("k1", "k2"), **spec: Any
    ) -> None:
        self.time = Time()
        self.caches = PromptCaches(CacheBook(), self.time.now_ms)
        secrets = ProviderSecrets(tuple(Secret(key) for key in keys))
        self.account = ProviderAccount(
            ProviderSpec("p", kind, **spec),
            secrets,
            Sources(),
            self.time,
            lambda _spec, _secrets: None,
        )
        self.side = VendorTarget(self.account, "gpt-4.1", "gpt", self.time)

    def plan(
        self, body: dict[str, Any] = BODY, *, native: bool = True, given: str = "", key: str = ""
    ) -> CachePlan:
        return self.caches.plan(
            beginning_of(("messages",), body, marked=False),
            {"w": self.side},
            lambda _side: Way("chat", native),
            tenant="t",
            conversation=key,
            given_key=given,
        )

    def call(self, body: dict[str, Any] = BODY, **more: Any) -> PlannedCall:
        plan = self.plan(body, **more)
        assert plan.cost("w", dollar_seconds=0.0, price=None) is not None
        call = plan.call("w")
        assert isinstance(call, PlannedCall)
        return call

    def digests(self) -> list[str]:
        return [place.key for place in self.account.cache_places("gpt-4.1", {})]


def used(read: int = 0) -> Usage:
    return Usage(3_000, 1, read)


def test_a_worker_that_is_no_target_has_no_cost_and_an_empty_call() -> None:
    plan = World().plan()
    assert plan.cost("another", dollar_seconds=0.0, price=None) is None
    assert isinstance(plan.call("another"), Uncached)


def test_where_caches_are_keys_the_key_that_has_the_prompt_is_preferred() -> None:
    world = World(cache_scope="key")
    first, second = world.digests()
    assert first != second
    call = world.call()
    call.sent(second)
    call.spoke()
    call.answered(used())
    again = world.call()
    assert again.prefer == second
    assert again.expected > 1_000


async def test_a_key_that_rests_is_waited_for_only_while_that_costs_less_than_the_prompt() -> None:
    world = World(cache_scope="key")
    first, second = world.digests()
    call = world.call()
    call.sent(second)
    call.spoke()
    call.answered(used())
    key = world.account._all()[1]
    for wait_s, prefer in ((0.05, second), (5.0, first)):
        key.limits.close(wait_s, world.time.now_ms() / 1000)
        found = world.call()
        assert found.prefer == prefer
        assert found.wait_s == pytest.approx(wait_s if prefer == second else 0.0)
    _, use = await world.account.use({}, second)
    assert use.key.digest == first


def test_nobody_waits_longer_than_the_limit() -> None:
    world = World(keys=("k1",))
    world.account._all()[0].limits.close(WAIT_MAX_S + 1, world.time.now_ms() / 1000)
    assert world.call().wait_s == 0.0


async def test_where_the_account_has_the_cache_its_keys_are_used_in_turn() -> None:
    world = World()
    assert world.digests() == [""]
    call = world.call()
    call.sent("")
    call.spoke()
    call.answered(used())
    assert world.call().prefer == ""
    uses = [(await world.account.use({}, ""))[1].key.value for _ in range(2)]
    assert uses == ["k1", "k2"]


def test_a_translated_request_gets_a_key_and_a_clients_own_only_where_the_provider_says_so() -> (
    None
):
    raw = msgspec.json.encode(BODY)
    world = World()
    written = world.call(native=False).written({"messages": []})
    assert len(written["prompt_cache_key"]) == 32
    assert world.call().native(raw) is raw
    told = World(cache_key_added=True).call().native(raw)
    assert msgspec.json.decode(told)["prompt_cache_key"] == written["prompt_cache_key"]
    assert told.endswith(raw[1:])


def test_a_clients_own_key_stays_and_divides_the_cache() -> None:
    world = World()
    call = world.call({**BODY, "prompt_cache_key": "mine"}, given="mine")
    raw = msgspec.json.encode({**BODY, "prompt_cache_key": "mine"})
    assert call.native(raw) is raw
    assert call.written({"a": 1}) == {"a": 1}
    call.sent("")
    call.spoke()
    call.answered(used())
    assert world.call(given="mine").expected > 1_000
    assert world.call(given="other").expected == 0


def test_a_vendor_that_knows_no_such_key_gets_none() -> None:
    world = World("gemini", cache_key_added=True)
    assert world.call(native=False).written({"a": 1}) == {"a": 1}
    assert world.call().native(b"{}") == b"{}"


def test_the_ratio_of_tokens_to_bytes_is_learned_within_bounds() -> None:
    world = World()
    scope = world.account.cache_places("gpt-4.1", {})[0].scope
    assert world.caches.ratio(scope) == 0.25
    world.caches.learn_ratio(scope, 1_000, 400)
    assert world.caches.ratio(scope) == pytest.approx(0.4)
    for _ in range(60):
        world.caches.learn_ratio(scope, 10, 10_000)
    assert world.caches.ratio(scope) <= RATIO_MAX
    world.caches.learn_ratio(scope, 0, 5)


def test_an_answer_that_never_began_and_told_nothing_leaves_nothing() -> None:
    world = World()
    call = world.call()
    call.sent("")
    call.answered(None)
    assert len(world.caches.book) == 0


def test_an_answer_in_one_piece_tells_its_usage_before_it_passes() -> None:
    world = World()
    call = world.call()
    call.sent("")
    call.answered(used())
    before = len(world.caches.book)
    call.spoke()
    assert len(world.caches.book) == before > 0


def test_a_price_makes_a_miss_cost_dollars() -> None:
    world = World()

    def price(prompt: int, read: int, written: int) -> float:
        return (prompt - 0.9 * read) * 3e-6

    cold = world.plan().cost("w", dollar_seconds=100.0, price=price)
    call = world.call()
    call.spoke()
    call.answered(used(0))
    warm = world.plan().cost("w", dollar_seconds=100.0, price=price)
    assert cold is not None
    assert warm is not None
    assert cold.dollars is not None
    assert warm.dollars is not None
    assert warm.dollars < 0.5 * cold.dollars
    assert warm.seconds < cold.seconds
    free = world.plan().cost("w", dollar_seconds=100.0, price=None)
    assert free is not None
    assert free.dollars is None
