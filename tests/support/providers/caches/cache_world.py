"""Nodes that choose among accounts by their prompt caches, in virtual time: real plans, rows and policy; the accounts
are stand-ins, which keep caches by code of their own and tell what they read, wrote and charge.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from smg_node.core.generation.events import Usage
from smg_node.providers.account import ProviderAccount
from smg_node.providers.affinity.cache_book import CacheBook, Entry
from smg_node.providers.affinity.cache_forecast import Way
from smg_node.providers.affinity.prompt_beginning import MARK_WORDS, beginning_of
from smg_node.providers.affinity.prompt_caches import PromptCaches
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret
from smg_node.providers.target import VendorTarget
from smg_node.routing.cache_affinity import Affinity
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.policy_registry import OwnBindings
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import load
from support.providers.stand_ins import KEY, Desk

WALL_MS: Final = 1_790_000_000_000
PATHS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "anthropic": ("/v1/messages", "messages", ("tools", "system", "messages")),
    "openai": ("/v1/chat/completions", "chat", ("tools", "messages")),
}
"""By kind: the path, the API, and the fields of a prompt in the vendor's order."""


class Time:
    """One clock for all."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now_ms(self) -> int:
        return WALL_MS + round(self.now_s * 1000)

    def monotonic_s(self) -> float:
        return self.now_s


class _Sources:
    def file(self, path: str) -> str:
        raise FileNotFoundError(path)

    def env(self, name: str) -> str | None:
        return None


class Node:
    """One node: its book, and rows on their way to it."""

    def __init__(self, world: "CacheWorld") -> None:
        self._world = world
        self.book = CacheBook(self)
        self.caches = PromptCaches(self.book, world.time.now_ms)
        self.policy = Affinity(PolicyParts(OwnBindings()))
        self.coming: list[tuple[float, Callable[[], None]]] = []

    def put(self, beginning: int, entry: Entry) -> None:
        self._tell(lambda node: node.book.heard(beginning, entry))

    def remove(self, beginning: int, scope: int) -> None:
        self._tell(lambda node: node.book.lost(beginning, scope))

    def _tell(self, what: "Callable[[Node], None]") -> None:
        due_s = self._world.time.now_s + self._world.rumor_s
        for node in self._world.nodes:
            if node is not self:
                node.coming.append((due_s, lambda node=node: what(node)))  # type: ignore[misc]  # bound now

    def catch_up(self) -> None:
        now_s = self._world.time.now_s
        for due_s, take in self.coming:
            if due_s <= now_s:
                take()
        self.coming = [one for one in self.coming if one[0] > now_s]


@dataclass
class Went:
    """What all requests came to."""

    read: int = 0
    requests: int = 0
    at: dict[int, int] = field(default_factory=dict)
    """The account of each conversation, as of its last turn."""
    moves: int = 0


class CacheWorld:
    """So many nodes and accounts of one kind."""

    def __init__(self, kind: str, nodes: int, accounts: int, model: str, **settings: Any) -> None:
        self.time = Time()
        self.rumor_s = 0.4
        self.kind, self.model = kind, model
        self.desks = [Desk(kind, models=("*",), **settings) for _ in range(accounts)]
        self.sides = {f"w{at}": self._side(at) for at in range(accounts)}
        self.nodes = [Node(self) for _ in range(nodes)]
        self.full: set[int] = set()
        """Accounts that nobody may be sent to."""
        self.went = Went()
        self._rng = random.Random(1)

    def _side(self, at: int) -> VendorTarget:
        spec = ProviderSpec(f"account-{at}", self.kind)
        secrets = ProviderSecrets((Secret(KEY),))
        account = ProviderAccount(
            spec, secrets, _Sources(), self.time, lambda _spec, _secrets: None
        )
        return VendorTarget(account, self.model, "public", self.time)

    def restart(self, at: int) -> None:
        """Let a node begin anew with the rows of the next one, as an exchange hands them to it."""
        giver = self.nodes[(at + 1) % len(self.nodes)]
        node = self.nodes[at] = Node(self)
        for beginning, entry in giver.book.all():
            node.book.heard(beginning, entry)

    def ask(self, node_at: int, talk: int, body: dict[str, Any]) -> int:
        """Send one turn of a conversation to a node; return the account that it went to."""
        node, side_of = self.nodes[node_at], self.sides
        node.catch_up()
        path, api, order = PATHS[self.kind]
        raw = repr(body).encode()
        plan = node.caches.plan(
            beginning_of(order, body, marked=any(word in raw for word in MARK_WORDS)),
            side_of,
            lambda _side: Way(api, True),
            tenant="t",
            conversation="",
            given_key="",
        )
        workers = [worker for at, worker in enumerate(side_of) if at not in self.full]
        asked = Asked("route", conversation=_opening(talk), caches=plan)
        chosen = workers[node.policy.choose(asked, Pool([load(one) for one in workers]), self._rng)]
        at = int(chosen[1:])
        call = plan.call(chosen)
        call.sent("")
        desk = self.desks[at]
        desk.now_s = self.time.now_s
        told = desk.told(path, body)["usage"]
        call.spoke()
        call.answered(_usage(told))
        before = self.went.at.get(talk, at)
        self.went.moves += before != at
        self.went.at[talk] = at
        self.went.requests += 1
        return at

    def read(self) -> int:
        """Return the tokens that all accounts read from their caches."""
        return sum(
            row["cached_tokens"] for desk in self.desks for row in desk.vendor.bill.told()["rows"]
        )

    def pico(self) -> int:
        """Return what all accounts charge."""
        return sum(desk.vendor.bill.told()["pico_dollars"] for desk in self.desks)


def _opening(talk: int) -> str:
    return blake2b(b"%d" % talk, digest_size=16).hexdigest()


def _usage(told: Mapping[str, Any]) -> Usage:
    """Return what an answer told, as the listeners of both APIs read it."""
    if "input_tokens" in told:
        read, written = told["cache_read_input_tokens"], told["cache_creation_input_tokens"]
        prompt = told["input_tokens"] + read + written
        return Usage(prompt, told["output_tokens"], read, cache_write_tokens=written)
    details = told["prompt_tokens_details"]
    return Usage(told["prompt_tokens"], told["completion_tokens"], details["cached_tokens"])


def replayed(
    kind: str,
    turns: Sequence[tuple[float, int, dict[str, Any]]],
    place: Callable[[float, int], int],
    accounts: int,
) -> tuple[int, int]:
    """Return what the turns (time, conversation, body) read, and cost in pico, where `place` says which account each
    goes to.
    """
    desks = [Desk(kind, models=("*",)) for _ in range(accounts)]
    path = PATHS[kind][0]
    for now_s, talk, body in turns:
        desk = desks[place(now_s, talk)]
        desk.now_s = now_s
        desk.told(path, body)
    bills = [desk.vendor.bill.told() for desk in desks]
    read = sum(row["cached_tokens"] for bill in bills for row in bill["rows"])
    return read, sum(bill["pico_dollars"] for bill in bills)
