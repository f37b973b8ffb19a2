"""Policy: interface of a pure rule that picks one of the candidates, and what it may look at of a
request.

A candidate has survived every filter (ready, not draining, serves the model), so a policy may pick
any. All state a policy keeps is its own and small; time and chance are arguments. What nodes have to
agree about without asking each other follows from hashes alone, and what cannot follow from hashes is
kept in bindings, which all nodes share.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from smg_node.core.journey import Ratings
from smg_node.core.ports import Rng
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.routing.pool import Candidate, Pool

Assignment: TypeAlias = Literal["ring", "random", "min_load", "min_group"]
Metric: TypeAlias = Literal["expected_wait", "requests"]
CacheMode: TypeAlias = Literal["cost", "threshold"]


CHOICE: Final = "choose="
"""Before the word by which a route says its way among its targets: `choose=fastest`. No policy has such a name."""


class Pricing(Protocol):
    """Prices of one request."""

    def __call__(self, worker: str, cached: float, answer: int, written: float = 0.0, /) -> float:
        """Return its dollars at a worker; infinity where no price is known.

        `cached` and `written` are the shares (0 to 1) of its prompt that are read from a vendor's cache and newly
        written to it; the answer has `answer` tokens.
        """
        ...


class PromptPictures(msgspec.Struct, frozen=True, gc=False):
    """The pictures of a prompt, as far as it matters for its place.

    `first` stands for the first of them: prompts that begin with the same one share it, on every node. `begins` is that
    one's first id in the prompt. `items` are, for each, the id behind its last one, and how many of its ids an encoder
    makes.
    """

    first: bytes
    begins: int
    items: tuple[tuple[int, int], ...]

    def uncached(self, overlap: float) -> int:
        """Return how many ids an encoder has to make where the first `overlap` ids of the prompt are cached."""
        return sum([tokens for end, tokens in self.items if end > overlap])


class Asked(msgspec.Struct, eq=False):
    """View of a request for policies. Read-only.

    `key` is the routing key that its client chose, `caller` a digest of the credential it came
    with, `client` the address it came from; each may be empty. `ids` are the tokens of its (first)
    prompt, `text` stands for them where tokens are not counted. `beginning` is the same prompt as
    the prefix index looks it up, None where there is no index. `now_s` is the monotonic clock.
    """

    model: str
    key: str = ""
    caller: str = ""
    client: str = ""
    ids: Sequence[int] = ()
    text: str = ""
    now_s: float = 0.0
    beginning: "Beginning | None" = None
    rated: Ratings | None = None
    """Where a policy that computes costs leaves them, if somebody will ask why: see `routing.costs.rate`."""
    tokens: int | None = None
    """How many tokens of the prompt the chosen one has to compute, if nothing is cached; None: all of `ids`."""
    conversation: str = ""
    """Digest of how the conversation begins, the same for all of its turns; "" where it is not known."""
    caches: "CachePlan | None" = None
    """What vendors' prompt caches are expected to save, for a route that chooses by it."""
    prompt_tokens: int = 0
    """Tokens of the prompt, or an estimate where nobody counts them; told to ways of routes only, as what follows."""
    answer_max: int | None = None
    """How many tokens its client lets the answer have; None where it does not say."""
    pricing: "Callable[[], Pricing] | None" = None
    """Makes what tells the dollars of the request; made only where they decide."""
    pictures: PromptPictures | None = None
    """The pictures of the prompt, None if it has none."""
    extra_s: Sequence[float] = ()
    """Seconds that they cost at each candidate beside the prompt's tokens; none without pictures."""


class Policy(Protocol):
    """Picks a worker."""

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the index of the chosen candidate in `pool.candidates`."""
        ...


@runtime_checkable
class Unchosen(Protocol):
    """A policy that may be told of the only candidate instead of being asked for it: it costs
    less.
    """

    def only(self, model: str, one: Candidate, tokens: int, overlap: float, now_s: float) -> float:
        """Note what `choose` would, had it chosen; return what a prompt of so many tokens costs there, in seconds."""
        ...


class Beginning(Protocol):
    """Lookup of one prompt in the prefix index; worked out when it is first asked for, and kept."""

    @property
    def blocks(self) -> int:
        """Number of its whole blocks: without one, no worker has anything of it."""
        ...

    def overlaps(self, pool: Pool) -> Sequence[float]:
        """Return for each of `pool.candidates` how many tokens of the prompt it need not compute, about.

        What lies further away than the device, or is only assumed, counts for less than it is.
        """
        ...

    def reaches(self, pool: Pool, token: int) -> bool:
        """Whether some candidate has the block of the prompt in which that token is, and all before it."""
        ...

    def first(self) -> bytes:
        """Return eight bytes that prompts with the same first block share, on every node; b"" without one."""
        ...

    def by_rank(self, worker: str) -> Mapping[int, float]:
        """Return how many tokens of the prompt each rank of a worker need not compute, weighed as `overlaps`.

        A rank that is not named has nothing of it, as far as that is known of a rank: what is known of the worker
        as a whole lies on one of them, and it is not known on which.
        """
        ...


class Bindings(Protocol):
    """Worker of each key that does not follow from the ring; the same on all nodes soon.

    A key is the 16 hex digits of `routing_keys.sticky_id`.
    """

    def worker_of(self, key: str) -> str | None:
        """Return the worker a key is bound to."""
        ...

    def keys_at(self, worker_id: str) -> int:
        """Return how many keys are bound to a worker, about."""
        ...

    def bind(self, key: str, worker_id: str, why: str) -> None:
        """Bind a key, whatever it was bound to before."""
        ...

    def touch(self, key: str) -> None:
        """Note that a bound key is in use, so that it is not forgotten."""
        ...

    def release(self, key: str) -> None:
        """Take a binding away: the ring decides again."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of policies; see the knobs of `routing`. `node` is the name of this one."""

    load_factor: float = 1.25
    prefix_tokens: int = 256
    assignment: Assignment = "ring"
    delegate: str = "power_of_two"
    metric: Metric = "expected_wait"
    cache_mode: CacheMode = "cost"
    cache_threshold: float = 0.3
    balance_abs: int = 64
    balance_rel: float = 1.5
    bucket_adjust_s: float = 5.0
    bucket_tokens_max: int = 4_096
    dollar_seconds: float = 0.0
    node: str = ""


def _unsaid(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True)
class PolicyParts:
    """Parts to build a policy from. `named` makes another one, for a policy that asks one in turn.

    `warn` takes a sentence for the operator: a policy says each of its own only once.
    """

    bindings: Bindings
    options: PolicyOptions = field(default_factory=PolicyOptions)
    named: "Callable[[str], Policy] | None" = None
    warn: Callable[[str], None] = _unsaid


PolicyFactory: TypeAlias = Callable[[PolicyParts], Policy]
