"""Sighting: one endpoint as a source of workers shows it now; and View: all sightings of a source."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from smg_node.config.worker_url import WorkerUrl

Endpoint: TypeAlias = str
"""`host:port`, with brackets around an IPv6 host, whatever the scheme: what tells endpoints apart."""


class SightingState(Enum):
    """What a source says of an endpoint that it shows. A worker that is not ready keeps what runs there."""

    READY = "ready"
    UNREADY = "unready"
    LEAVING = "leaving"
    """It ends and does not come back."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One endpoint of a view: how it is reached and used.

    `instance` tells a replaced engine from the old one at the same address, such as the uid of a pod; empty
    where a source cannot tell. `origin` is what the source calls it, for operators: `pod serving/vllm-0`.
    """

    url: WorkerUrl
    state: SightingState = SightingState.READY
    instance: str = ""
    origin: str = ""

    @property
    def endpoint(self) -> Endpoint:
        """The address that it is known by."""
        return self.url.address


@dataclass(frozen=True, slots=True)
class Unusable:
    """Something that a source shows and that is no sighting, or only in part, and why."""

    origin: str
    why: str


@dataclass(frozen=True, slots=True)
class View:
    """All sightings of one source.

    `whole_ms` is the moment, by the monotonic clock in ms, up to which the view is known to be complete; 0 if it
    never was, and then nothing may be concluded from what is missing in it. `failing_since_ms` is 0 while the
    source answers; `trouble` then is empty, and otherwise what it answered last, for operators, without secrets.

    `gone` are endpoints whose end the source has told expressly, such as a deleted pod: their absence needs no
    second look. An endpoint in `sightings` is never in `gone`.
    """

    sightings: Mapping[Endpoint, Sighting]
    whole_ms: int = 0
    gone: frozenset[Endpoint] = frozenset()
    trouble: str = ""
    failing_since_ms: int = 0
    unusable: tuple[Unusable, ...] = ()
