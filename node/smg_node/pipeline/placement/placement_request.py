"""Placement request: what one call needs of its worker, and the rule and attempt that find one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import msgspec

from smg_node.core.generation.request import TokenIds, token_ids
from smg_node.core.journey import Journey, Why
from smg_node.core.request_context import Priority
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.fleet.models.served_model import AnyModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.candidates import ChoiceSet, Dropped
from smg_node.pipeline.placement.eligibility import Allowed
from smg_node.pipeline.placement.role_candidates import RoleCandidates
from smg_node.pipeline.retry import NOBODY, Avoid
from smg_node.routing.policy import Beginning, Pricing, PromptPictures

PROBE: Final = "probe"
TARGET: Final = "target"
"""Stand for the policy where none was asked."""


class PlacementRequest(msgspec.Struct, eq=False):
    """Needs of one call. Not changed after it is made.

    `prompt_tokens` are counted there (None: as many as `ids` are). With `fits`, only workers for
    which it is true, and `why_not` says of another one why it is not; `avoid` are those that failed the call before.
    `target` is the one worker its client wants. `opening` returns the digest of how its conversation begins, "" if it
    has none. Only a generation can be shared by a `pair`. One that is not `patient` is refused where it would have to
    wait. The rest is input of policies (`routing.policy.Asked`) and of the journey.
    """

    deadline_s: float
    ids: TokenIds = msgspec.field(default_factory=token_ids)
    text: str = ""
    prompt_tokens: int | None = None
    key: str = ""
    caller: str = ""
    client: str = ""
    adapter: str = ""
    priority: Priority = "default"
    target: str | None = None
    fits: Allowed | None = None
    avoid: Avoid = NOBODY
    choice: int = 0
    why: Why = "first"
    journey: Journey | None = None
    pair: bool = True
    patient: bool = True
    opening: Callable[[], str] | None = None
    caches: CachePlan | None = None
    why_not: Callable[[Worker], str] | None = None
    answer_max: int | None = None
    pricing: Callable[[], Pricing] | None = None
    note: str = ""
    """What decided before any policy, in words, for the journey."""
    places: tuple[tuple[str, int], ...] = ()
    """Digest and first id of each picture among `ids`: what a prefix cache tells them apart by."""
    pictures: PromptPictures | None = None
    """The same pictures, for policies; None if there are none."""
    encodable: tuple[tuple[str, int], ...] = ()
    """Digest and tokens of each picture that another worker may encode."""
    encodes: Allowed | None = None
    """Whether a worker can encode them, as far as they are made for it; None: every one can."""


class Beginnings(Protocol):
    """Prompt lookups in the prefix index."""

    def of(
        self,
        model: AnyModel,
        ids: TokenIds,
        adapter: str,
        now_s: float,
        places: Sequence[tuple[str, int]] = (),
    ) -> Beginning | None:
        """Return the lookup of a prompt now, with pictures at these `places`; None where the model has no index."""
        ...

    def dispatched(
        self, beginning: Beginning, worker: str, now_s: float, *, rank: int | None = None
    ) -> None:
        """Record that `worker` has computed that prompt, on `rank` if it was for one."""
        ...

    def answered(
        self,
        beginning: Beginning,
        ids: TokenIds,
        worker: str,
        now_s: float,
        *,
        rank: int | None = None,
    ) -> None:
        """Record that `worker` has answered that prompt with `ids`."""
        ...


@dataclass(frozen=True, slots=True)
class EncodeRule:
    """Rule for who encodes a picture, where workers do that for others: by `policy`, in `timeout_s`.

    Who works its prompt off does it where none of them can, with `fallback`.
    """

    policy: str = "consistent_hashing"
    fallback: bool = True
    timeout_s: float = 30.0


ObserveEncode: TypeAlias = Callable[[str, float], None]
"""Told how one encode call ended (ok, failed, cancelled), and how many seconds it took."""


def unobserved(_outcome: str, _seconds: float) -> None:
    """Take no notice."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Placement rule of a model's calls: its policy, and when the own zone is left.

    `prefill` and `decode` are the policies for the two halves of a pair. Workers that answer alone are taken where
    no pair can be had, with `fallback`.
    """

    policy: str
    zone: str = ""
    zone_spill: float = 0.8
    prefill: str = "cache_aware"
    decode: str = "least_load"
    fallback: bool = True
    encode: EncodeRule = field(default_factory=EncodeRule)


class PlacementAttempt(msgspec.Struct, eq=False):
    """One attempt to place a call: its candidates, its rule, and since when the call waits."""

    model: AnyModel
    wish: PlacementRequest
    stages: RoleCandidates
    rule: Rule
    began_s: float


class Part(msgspec.Struct, gc=False):
    """Role a worker is chosen for: everything (role ""), or one half. `name` is the policies' name
    of the model.

    Not changed after it is made for its request.
    """

    role: str
    name: str
    policy: str
    tokens: int | None = None


class CachedPlacement(msgspec.Struct, frozen=True):
    """Choice set and rule of a model's calls, as of one version of the fleet and until its time."""

    version: int
    model: AnyModel
    until_s: float
    part: Part
    choosable: ChoiceSet
    dropped: Dropped
    only: Worker | None
    """The one there is, if there is but one."""
    encoded: bool = False
    """Whether there are others that encode pictures for them."""
