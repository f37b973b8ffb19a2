"""Vendor cache: what a vendor keeps of prompts for later requests, by which rules and where, as values.

A *place* is where one target's prompts are cached: its account, or one key of it where caches are keys'.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

LIFE_MS: Final = 300_000
"""Of what is cached, where nobody says another."""
LONG_MS: Final = 3_600_000

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
