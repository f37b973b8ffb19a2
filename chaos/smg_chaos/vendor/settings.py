"""Settings of a stand-in: which hosting it is, what it knows, says, limits and breaks."""

from typing import Final

import msgspec

from smg_chaos.engine.nearest import unknown_name
from smg_chaos.vendor.errors.envelopes import Family
from smg_chaos.vendor.hostings.hosting import HOSTINGS, LimitStyle
from smg_chaos.vendor.hostings.models import MODELS
from smg_chaos.vendor.hostings.quirks import QUIRKS, VENDORS
from smg_chaos.vendor.limits.bill import parse_price

KEYS: Final = ("sk-vendor", "AKIDVENDOR:vendor-secret")
"""The good keys unless others are given: one for headers, one for signatures."""
ANY_MODEL: Final = "*"
CACHE_SCOPES: Final = ("account", "key")


class VendorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a stand-in is told. Rates of 0 are none; `script` is what it says, "" for facts of the request."""

    kind: str = "openai"
    models: tuple[str, ...] = ()
    keys: tuple[str, ...] = KEYS
    quirks: tuple[str, ...] = ()
    script: str = ""
    ttft_ms: float = 0.0
    itl_ms: float = 0.0
    context: int = 0
    strict: bool = False
    account: str = "account"
    seal_key: str = "vendor"
    seal_bytes: int = 0
    token_life_s: float = 3_600.0
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    cache: bool = True
    cache_ttl_s: float = 300.0
    cache_min_tokens: int = 0
    cache_scope: str = "account"
    prices: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    seed: int = 1
    kept_requests: int = 256

    def __post_init__(self) -> None:
        """Refuse, with ValueError, what is not known."""
        if self.cache_scope not in CACHE_SCOPES:
            raise ValueError(unknown_name("cache scope", self.cache_scope, CACHE_SCOPES))
        if self.kind not in HOSTINGS:
            raise ValueError(unknown_name("kind", self.kind, HOSTINGS))
        for quirk in self.quirks:
            if quirk not in QUIRKS and quirk not in VENDORS:
                raise ValueError(unknown_name("quirk", quirk, [*QUIRKS, *VENDORS]))
        for price in self.prices:
            parse_price(price)

    @property
    def all_quirks(self) -> frozenset[str]:
        """Return the quirks, those of named vendors included."""
        found = set(HOSTINGS[self.kind].quirks)
        for quirk in self.quirks:
            found |= VENDORS[quirk].quirks if quirk in VENDORS else {quirk}
        return frozenset(found)

    @property
    def served(self) -> tuple[str, ...]:
        """Return the names of the models."""
        return self.models or MODELS[HOSTINGS[self.kind].models]

    def family(self) -> Family:
        """Return the envelope of its errors: that of a named vendor, else the hosting's."""
        named = [VENDORS[quirk] for quirk in self.quirks if quirk in VENDORS]
        return named[0].family if named else HOSTINGS[self.kind].family

    def limit_style(self) -> LimitStyle:
        """Return how it tells its limits: as a named vendor, else as the hosting."""
        named = [VENDORS[quirk] for quirk in self.quirks if quirk in VENDORS]
        return named[0].limits if named else HOSTINGS[self.kind].limits
