"""Vendor side: interface of an HTTP engine that is a model at a vendor: its APIs, URLs, credentials and errors.

An `HttpEngine` has one where it is no server of ours. Whoever calls it asks the vendor side how a request is dressed
for it, and what an answer that is none means.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from smg_node.core.errors import SmgError
from smg_node.core.prices.price import Price
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.http.vendor_cache import CachePlace, CacheRules


class Undressing(Protocol):
    """Takes back what a request's dress brought into an answer that passes: another name, a usage nobody asked for."""

    def event(self, data: bytes) -> bytes | None:
        """Return one event's data for the client, None for an event that it did not ask for."""
        ...

    def whole(self, body: bytes) -> bytes:
        """Return a whole body for the client."""
        ...


class Dressed(NamedTuple):
    """A request as the vendor is sent it: path with query, headers with the credential, body.

    `undress` is for its answer, None where that is translated. `account` is what the vendor side knows it by.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    undress: Undressing | None = None
    account: object = None


class Refusal(NamedTuple):
    """What an answer with a bad status means. `without_state`: the vendor refused opaque state that it was sent, and may
    take the same request without. `anew`: it refused a field that is left out of what is written from now on.
    """

    error: SmgError
    without_state: bool = False
    anew: bool = False


class Unframer(Protocol):
    """Turns the frames of a hosting into the bytes that the API itself has."""

    def feed(self, piece: bytes) -> bytes:
        """Return what the frames that are whole now hold; `WorkerError` for one that is an error."""
        ...

    def finish(self) -> bytes:
        """Return the rest; UPSTREAM_FAILED if a frame was cut."""
        ...


class VendorSide(Protocol):
    """One model of one provider, as its calls see it."""

    @property
    def provider(self) -> str:
        """Name of the provider."""
        ...

    @property
    def model(self) -> str:
        """The vendor's name of the model."""
        ...

    @property
    def price(self) -> Price | None:
        """What a call costs there by the price list as it is now; None if nobody has said."""
        ...

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the APIs it speaks, the preferred one first."""
        ...

    def dialect(self, name: str) -> ProviderDialect:
        """Return one of these."""
        ...

    def options(self, name: str, *, stateless: bool = False) -> WriterOptions:
        """Return what the writer of that API must know. `stateless`: no opaque state goes along."""
        ...

    def quirks(self) -> frozenset[str]:
        """Return what this vendor does otherwise."""
        ...

    async def passed(
        self,
        name: str,
        raw: bytes,
        *,
        ours: str,
        streamed: bool,
        headers: Mapping[str, str],
        prompt_tokens: int,
        prefer: str = "",
    ) -> Dressed:
        """Return a client's own request in that API: its bytes, dressed. `headers` are all of the client's, `ours` is
        its name of the model, `prompt_tokens` about what it spends, `prefer` the digest of the key that should be used
        if it may be.

        OVERLOADED if there is no credential in time.
        """
        ...

    async def written(
        self,
        name: str,
        fields: Mapping[str, object],
        *,
        headers: Mapping[str, str],
        prompt_tokens: int,
        prefer: str = "",
    ) -> Dressed:
        """Return a body that was written for that API, to be streamed, dressed; as `passed` otherwise."""
        ...

    def answer_headers(self, headers: Mapping[str, str], dressed: Dressed) -> dict[str, str]:
        """Return which headers of an answer pass to the client; notes what they tell of the account."""
        ...

    def unframer(self, name: str) -> Unframer | None:
        """Return what takes the hosting's frames off a stream in that API; None where it has none."""
        ...

    def refused(
        self, status: int, headers: Mapping[str, str], body: bytes, dressed: Dressed
    ) -> Refusal:
        """Return what an answer means whose status is none of success; notes what it says of the account."""
        ...

    def broken(self, said: WorkerError, dressed: Dressed) -> SmgError:
        """Return the error for one that the vendor told inside an answer; notes what it says of the account."""
        ...

    def unanswered(self, dressed: Dressed) -> None:
        """Take in that a call was given up, or broke, before any of its answer came."""
        ...

    def off_s(self, prompt_tokens: int = 0) -> float:
        """Return for how long no request with about so many tokens should go there, 0.0 if one may now."""
        ...

    def off_error(self, prompt_tokens: int = 0) -> SmgError:
        """Return the error for such a request that would have to go there while it is off."""
        ...

    def refusal(self, prompt_tokens: int) -> SmgError:
        """Return the same for a client that is refused now; of several not all are told to come back at one moment."""
        ...

    @property
    def keys(self) -> int:
        """How many keys its account has; 1 where it has none, or none was read yet."""
        ...

    def own_account(self, headers: Mapping[str, str]) -> bool:
        """Whether calls for a client that sent these headers are made by the provider's account, and not by its own key."""
        ...

    def missed(self, prompt_tokens: int) -> None:
        """Take in that such a request would have gone there, were it not off."""
        ...

    # ── Its prompt cache ─────────────────────────────────────────────────────

    @property
    def cache_key_added(self) -> bool:
        """Whether a client's own request gets a `prompt_cache_key` if it has none."""
        ...

    def cache_rules(self, name: str) -> CacheRules:
        """Return how the vendor caches what it is asked in that API."""
        ...

    def cache_places(self, tokens: float) -> Sequence[CachePlace]:
        """Return where prompts are cached, and how long each takes no request of so many tokens; never empty."""
        ...

    def cache_key_of(self, dressed: Dressed) -> str:
        """Return the digest of the key that a request was dressed with; "" where the account has the cache."""
        ...

    def cached(self, *, read: int, written: int, expected: float) -> None:
        """Take in how many tokens of a prompt were read from the cache, newly written to it, and expected to be read."""
        ...
