"""Known workers: what the registry holds of endpoints that sources of one kind showed."""

from dataclasses import dataclass

from smg_node.config.worker_url import WorkerUrl
from smg_node.discovery.sighting import Endpoint, SightingState


@dataclass(frozen=True, slots=True)
class Known:
    """Entry of a source of some kind about one endpoint.

    `owner` is the name of the source that wrote it. `heard_ms` is the moment, by the monotonic clock in ms, at which
    this node learned of what the entry says now: a view that is older says nothing about it. `withheld`: an operator
    removed the worker, and the entry only remembers what was there; `exists`: the worker does, by whichever word.
    `misplaced`: it is registered under another scheme by hand, and the entry belongs to that worker. `own`: this node
    wrote it. `keep`: the worker stays when its source is in no settings any more; `released`: that source shows it no
    more, and another one that does may have it.
    """

    worker_id: str
    url: WorkerUrl
    state: SightingState
    instance: str
    owner: str
    heard_ms: int
    withheld: bool = False
    exists: bool = True
    misplaced: bool = False
    own: bool = False
    keep: bool = False
    released: bool = False

    @property
    def endpoint(self) -> Endpoint:
        """The address that it is known by."""
        return self.url.address


@dataclass(frozen=True, slots=True)
class Dropped:
    """Endpoint that another node found gone: which engine was there, and when this node heard of it."""

    instance: str
    heard_ms: int
