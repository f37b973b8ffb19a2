"""Worker spec: the registered description of a worker, the part that all nodes share."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from smg_node.config.worker_url import PAIRING_LABELS, WorkerUrl, parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.core.ids import WorkerId

READY: Final = "ready"
LEAVING: Final = "leaving"
WEIGHT_LABEL: Final = "weight"
CHOOSE_LABEL: Final = "choose"
"""Label of a route's target: the way in which the route chooses among them."""
AFFINITY: Final = "affinity"
"""The way of a route that chooses by vendors' prompt caches."""
ON_LABEL: Final = "on"
"""Label of a target that joins only after failures of the kinds it lists, with commas between."""
SPLIT_LABEL: Final = "split"
"""Label of a target that a split goes to: its rule."""
SHADOW_LABEL: Final = "shadow"
"""Label of a target that gets copies of requests: their rule."""
ONLY_LABEL: Final = "only"
"""Label of a target that is there for a split or a shadow alone: `split`, `shadow`, or both with a comma between."""
WEIGHT_MIN: Final = 0.05
WEIGHT_MAX: Final = 20.0
"""Beyond a ratio of 400 the smaller worker might as well not be there, and rings grow without use."""


@dataclass(frozen=True, slots=True)
class DeclaredWorker:
    """One worker as the registry has it.

    `api_key` is what its calls carry; `has_key` says that there is one, also where this node cannot
    open it, and `trouble` why the worker cannot be used here although it is registered. `sources`
    are the sources that say it exists, `registered_by` the node that said so last, `version` grows
    with each change.
    """

    url: WorkerUrl
    api_key: str | None = field(default=None, repr=False)
    draining: bool = False
    has_key: bool = False
    trouble: str = ""
    sources: tuple[str, ...] = ()
    registered_by: str = ""
    version: int = 0
    state: str = READY
    """What its sources say of it: ready, unready or leaving; only a ready one gets new work."""
    instance: str = ""
    """What tells the engine there from another one at the same address; empty: nobody says."""

    @property
    def id(self) -> WorkerId:
        """The worker's id: that of its address."""
        return worker_id_of(self.url)

    @property
    def labels(self) -> Mapping[str, str]:
        """The operator's labels of the worker."""
        return self.url.labels

    @property
    def weight(self) -> float:
        """Its share of keys relative to other workers: the label `weight`, 1 where it is none."""
        try:
            weight = float(self.labels.get(WEIGHT_LABEL, "1"))
        except ValueError:
            return 1.0
        # Not a number is neither above nor below anything.
        return weight if WEIGHT_MIN <= weight <= WEIGHT_MAX else 1.0

    def same_engine(self, other: "DeclaredWorker") -> bool:
        """Whether what `other` says changes nothing about how the engine is called and what it serves.

        Another instance is another engine; where one of both does not say which, it is taken for the same.
        """
        if self.instance and other.instance and self.instance != other.instance:
            return False

        def of(one: DeclaredWorker) -> tuple[object, ...]:
            sharing = {key: one.labels[key] for key in PAIRING_LABELS if key in one.labels}
            url = replace(one.url, labels=sharing, priority=0, cost=0.0)
            return url, one.api_key, one.trouble

        return of(self) == of(other)


def worker_id_of(url: WorkerUrl) -> WorkerId:
    """Return the id of the worker at this address, in whatever spelling: the same on every node."""
    return _digest(url.identity)


def worker_id_at(identity: str) -> WorkerId:
    """Return the id of the worker with that identity; see `WorkerUrl.identity`."""
    return _digest(identity)


def former_id_of(url: WorkerUrl) -> WorkerId:
    """Return the id that this spelling of an address had in the release before this one."""
    return _digest(url.endpoint)


def ids_named(text: str) -> tuple[WorkerId, ...]:
    """Return the ids that the worker may have whose URL is `text`; none for what is no URL."""
    try:
        url = parse_worker_url(text)
    except SmgError:
        return ()
    return worker_id_of(url), former_id_of(url)


def _digest(text: str) -> WorkerId:
    return WorkerId(f"w-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}")
