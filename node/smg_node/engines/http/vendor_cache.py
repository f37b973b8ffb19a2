"""Vendor cache: what a vendor keeps of prompts for later requests, by which rules and where; one call's use of it.

A *place* is where one target's prompts are cached: its account, or one key of it where caches are keys'.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from smg_node.core.generation.events import Usage

LIFE_MS: Final = 300_000
"""Of what is cached, where nobody says another."""
LONG_MS: Final = 3_600_000

Dollars: TypeAlias = Callable[[int, int, int], float]
"""Returns what a call costs of whose prompt so many tokens are read, and so many written: (prompt, read, written)."""
MarkForm: TypeAlias = Literal["", "top", "last", "point"]
"""How one mark for the whole prompt is written: at the top of the body, on the last block, as a block of its own; or
not at all.
"""


class CacheRules(msgspec.Struct, frozen=True):
    """How one model at one vendor caches prompts.

    `marked`: only what the request marks is cached. `least_tokens`: below it nothing is, and nobody says so. `life_ms`
    is how long it is kept where the request says nothing. `weight` is how far an expectation counts. `mark` is how a
    translated request is marked; `takes_key`: requests with one `prompt_cache_key` share a cache.
    """

    marked: bool
    least_tokens: int
    life_ms: int
    weight: float = 1.0
    mark: MarkForm = ""
    takes_key: bool = False


class CachePlace(NamedTuple):
    """One place. `scope` names it in the cache book; `key` is the key that has it, "" where the whole account does.

    `wait_s` is how long that key, or the account's first one, takes no request.
    """

    scope: int
    key: str = ""
    wait_s: float = 0.0


class CacheCost(NamedTuple):
    """What a request comes to at one target: seconds, its dollars in them; tokens that it is expected to read; dollars,
    None where no price is known.
    """

    seconds: float
    read: float
    dollars: float | None = None


class CacheCall(Protocol):
    """Use of a prompt cache by one call: what the call takes along for it, and what came of it."""

    @property
    def prefer(self) -> str:
        """The digest of the key that has the prompt; "" for any."""
        ...

    @property
    def wait_s(self) -> float:
        """How long it is worth waiting for that key, or the account, to take a request."""
        ...

    @property
    def expected(self) -> float:
        """Tokens that it is expected to read."""
        ...

    def native(self, raw: bytes) -> bytes:
        """Return a client's own body as it goes out."""
        ...

    def written(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a body that was written here, with what lets its vendor cache it."""
        ...

    def sent(self, key: str) -> None:
        """Take in by which key it was sent."""
        ...

    def spoke(self) -> None:
        """Take in that the answer began."""
        ...

    def answered(self, used: Usage | None) -> None:
        """Take in what it cost, None where that was not told."""
        ...


class Uncached:
    """A call that nobody expects anything of; see `CacheCall`."""

    prefer = ""
    wait_s = 0.0
    expected = 0.0

    def native(self, raw: bytes) -> bytes:
        """Return the body."""
        return raw

    def written(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body."""
        return fields

    def sent(self, key: str) -> None:
        """Do nothing."""

    def spoke(self) -> None:
        """Do nothing."""

    def answered(self, used: Usage | None) -> None:
        """Do nothing."""


class CachePlan(Protocol):
    """What one request is expected to come to at each target of its route, by the targets' workers."""

    def cost(
        self, worker: str, *, dollar_seconds: float, price: Dollars | None
    ) -> CacheCost | None:
        """Return what it comes to there, where a dollar counts so many seconds; None where that is no target."""
        ...

    def call(self, worker: str) -> CacheCall:
        """Return the call that was placed there."""
        ...
