"""Node port: models, workers, tokens, health and cluster, as the HTTP surface uses them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from smg_node.core.journey import Journey


class ParserView(msgspec.Struct, frozen=True):
    """How one part of a model's answers is parsed: the parser's name, its options, and their
    source.

    `source` is settings, worker, response template, chat template, configuration, name or nothing; `evidence` is
    what was found there.
    """

    name: str
    options: tuple[str, ...]
    source: str
    evidence: str


class ParsersView(msgspec.Struct, frozen=True):
    """How a model's answers are parsed. `warnings` are contradictions between the sources."""

    reasoning: ParserView
    tools: ParserView
    warnings: tuple[str, ...] = ()


class ModelView(msgspec.Struct, frozen=True):
    """One served model, as `/v1/models` shows it. `created_s` is when this node first saw it."""

    id: str
    created_s: int
    owned_by: str
    aliases: tuple[str, ...]
    workers: int
    workers_ready: int
    """Those that can take part in its requests: of a prefill and a decode worker neither can alone."""
    context: int | None
    roles: Mapping[str, int] = {}
    """How many of those that are ready play which part."""
    parsers: "ParsersView | None" = None
    """How its answers are read; None where its workers read them themselves."""
    sees: bool = False
    """Whether some engine of it takes pictures."""


class PictureRulesView(msgspec.Struct, frozen=True):
    """Rules that pictures of a model follow at `workers` of its workers, all of which agree.

    `family` is "" where this node does not know how they are made: `why_not` says why. `values` are the numbers in
    force, each with its name and where it was found.
    """

    workers: int
    family: str
    why_not: str
    values: tuple[Mapping[str, Any], ...]


class WorkerView(msgspec.Struct, frozen=True):
    """One worker of the whole cluster, as `/workers` shows it; no secrets.

    `status` is pending, ready, not_ready, failed or draining. `owner` is the node that registered
    it, `sources` declare it (`api`, `static@NODE`, …), `seen_by` are the nodes that probe it and
    find it up. `busy` is its engine's last load report, and this node's estimate; `breaker` whether
    this node skips it. `ranks` are its data-parallel ranks. `pairing` is its hand-over style and
    group, or ""; at `bootstrap_port` it meets partners, None if unknown.
    """

    id: str
    url: str
    model: str
    contract: str
    role: str
    status: str
    reason: str
    inflight: int
    labels: Mapping[str, str]
    details: Mapping[str, Any]
    priority: int = 50
    cost: float = 1.0
    has_key: bool = False
    sources: tuple[str, ...] = ()
    owner: str = ""
    seen_by: tuple[str, ...] = ()
    busy: Mapping[str, Any] = {}
    breaker: Mapping[str, Any] = {}
    ranks: int = 1
    pairing: str = ""
    bootstrap_port: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """A worker to be registered; None where it is not said, and a default or the URL decides."""

    url: str
    model: str | None = None
    role: str | None = None
    contract: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int | None = None
    cost: float | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WorkerChange:
    """Change of a worker; None stays as it is, an empty `api_key` or `model` is removed.

    `labels` replace all that there are; `bootstrap_port` becomes one of them. `draining` is whether it gets no
    new work.
    """

    model: str | None = None
    role: str | None = None
    contract: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int | None = None
    cost: float | None = None
    api_key: str | None = field(default=None, repr=False)
    draining: bool | None = None
    bootstrap_port: int | None = None


class WorkerSight(msgspec.Struct, frozen=True):
    """One node's view of a worker that it probes. `age_ms` is the age of that view."""

    up: bool
    reason: str
    age_ms: int


class ClusterWorkerView(msgspec.Struct, frozen=True):
    """One worker of the cluster, with each node's view of it.

    `status` is this node's own judgement, `probers` the nodes in charge of probing, `sights` the
    nodes' views by name. Open requests and tokens are those of this node (`mine`) and, by their
    reports, of all others (`others`); `load_age_ms` is the age of the oldest report, None for none.
    """

    id: str
    url: str
    model: str
    role: str
    contract: str
    priority: int
    cost: float
    labels: Mapping[str, str]
    has_key: bool
    draining: bool
    sources: tuple[str, ...]
    registered_by: str
    version: str
    status: str
    reason: str
    probers: tuple[str, ...]
    sights: Mapping[str, WorkerSight]
    requests_mine: int
    tokens_mine: int
    requests_others: int
    tokens_others: int
    load_age_ms: int | None


class Health(msgspec.Struct, frozen=True):
    """Result of the probes.

    `reasons` say why the node is not ready, empty when it is; `degraded` what is not as it should be
    although it serves.
    """

    live: bool
    ready: bool
    draining: bool
    workers_ready: int
    workers_total: int
    reasons: tuple[str, ...]
    degraded: tuple[str, ...] = ()


class MemberRow(msgspec.Struct, frozen=True):
    """One member of the cluster as this node sees it. `state` is alive, suspect, dead or left.

    `since_ms` is when it entered that state here, wall-clock milliseconds since the epoch; `lag_ms`
    the age of its last own packet, None for this node; `rtt_ms` the median round trip. `health` is
    this node's local health score, 0 (well) to 7, None for others. `announced` is false while a
    returned member is watched before it counts. `accuser` is the member that suspects it, or empty.
    """

    name: str
    state: str
    address: str
    boot: int
    incarnation: int
    rtt_ms: float | None
    health: int | None
    lag_ms: int | None
    since_ms: int
    meta: Mapping[str, str | int | bool]
    me: bool
    announced: bool
    accuser: str


class ClusterCard(msgspec.Struct, frozen=True):
    """The cluster as this node sees it. `security` is encrypted, insecure or alone (no mesh at all).

    `seeds` are rows of `peer` and, if it failed last time, `error`. `keys` are fingerprints, the first one
    encrypts.
    """

    label: str
    node: str
    address: str
    boot: int
    incarnation: int
    security: str
    joined: bool
    isolated: bool
    drained: bool
    leaving: bool
    members: Mapping[str, int]
    degraded: tuple[str, ...]
    wire_version: int
    digest: str
    seeds: Sequence[Mapping[str, str]]
    keys: tuple[str, ...]


class ClusterEvent(msgspec.Struct, frozen=True):
    """One event of the cluster's life as this node saw it; `id` grows by one from event to event."""

    id: int
    time_ms: int
    kind: str
    name: str
    detail: Mapping[str, str | int]


class KeyringView(msgspec.Struct, frozen=True):
    """The keyring, by fingerprint: the encrypting key, its holders, members that could not be
    asked.
    """

    primary: str
    keys: Mapping[str, Sequence[str]]
    members: Mapping[str, str]


class Explained(msgspec.Struct, frozen=True):
    """Journeys of the request `wanted`, as `node` found them, newest first.

    `silent` are the members that could not be asked, each with the reason.
    """

    wanted: str
    node: str
    journeys: tuple[Journey, ...]
    silent: Mapping[str, str]


class Catalog(Protocol):
    """Served models."""

    def models(self) -> Sequence[ModelView]:
        """Return every served model, sorted by id."""
        ...

    def model(self, name: str) -> ModelView:
        """Return the model of that id or alias; NOT_FOUND `model_not_found` otherwise."""
        ...

    async def pictures(self, name: str) -> Sequence[PictureRulesView]:
        """Return whose rules pictures of that model follow: one row where all its workers agree, none if it sees nothing.

        None of them either where this process has not read the model's files.
        """
        ...


class Workers(Protocol):
    """The fleet, for its operator: workers belong to the cluster, so what changes here changes everywhere."""

    def workers(self) -> Sequence[WorkerView]:
        """Return every worker, sorted by id."""
        ...

    def worker(self, worker_id: str) -> WorkerView:
        """Return one worker by id or URL; NOT_FOUND `worker_not_found` otherwise."""
        ...

    def cluster_workers(self) -> Sequence[ClusterWorkerView]:
        """Return every worker with each node's view of it, sorted by id."""
        ...

    def add(self, wish: WorkerRequest) -> WorkerView:
        """Register a worker; idempotent by URL. INVALID_REQUEST for a URL that cannot be one."""
        ...

    def change(self, worker_id: str, change: WorkerChange) -> WorkerView:
        """Change a worker on every node; return it as it is then."""
        ...

    def drain(self, worker_id: str) -> WorkerView:
        """Send it no new work, from any node."""
        ...

    def undrain(self, worker_id: str) -> WorkerView:
        """Send it work again."""
        ...

    async def remove(self, worker_id: str, *, force: bool) -> None:
        """Forget a worker everywhere; unless `force`, only when its requests have ended (at most 180 s)."""
        ...

    async def probe(self, worker_id: str) -> WorkerView:
        """Probe a worker now, at most 3 s."""
        ...

    async def loads(self) -> Sequence[Mapping[str, Any]]:
        """Return each ready worker's load report, one row a rank, failures as rows with `error`."""
        ...


class Explainer(Protocol):
    """Journeys of requests, on any node."""

    async def explain(self, wanted: str, *, node: str = "") -> Explained:
        """Return every journey of a request's or an answer's id, within seconds; `node` asks that
        one only.

        NOT_FOUND `request_not_found` where no node that answers has any.
        """
        ...


class HealthReport(Protocol):
    """Health of this node."""

    def health(self) -> Health:
        """Return the present state."""
        ...


class Cluster(Protocol):
    """The nodes that are one cluster, and this one among them."""

    def card(self) -> ClusterCard:
        """Return the cluster as this node sees it."""
        ...

    def members(self) -> Sequence[MemberRow]:
        """Return every member, sorted by name."""
        ...

    def member(self, name: str) -> MemberRow:
        """Return one member; NOT_FOUND `member_not_found` otherwise."""
        ...

    def join(self, peers: Sequence[str]) -> None:
        """Try to find these nodes from now on, for ever; INVALID_REQUEST for an invalid address."""
        ...

    def leave(self) -> None:
        """Begin to drain, announce the leave, and stop; returns at once."""
        ...

    async def set_aside(self, name: str, *, on: bool) -> MemberRow:
        """Make that member refuse new work, or take it again; return this node's view of it.

        NOT_FOUND for an unknown one, CONFLICT for one that is not alive or leaving, UPSTREAM_FAILED
        if it does not answer.
        """
        ...

    async def forget(self, name: str) -> Mapping[str, str]:
        """Drop a dead member's row everywhere; return member to `ok` or why not. CONFLICT if it lives."""
        ...

    async def keyring(self, operation: str, key: str, *, force: bool) -> KeyringView:
        """List the keyring of every member, or change it: `list`, `install`, `use`, `remove`.

        INVALID_REQUEST for a key that is none; CONFLICT when not all members took part, unless `force`.
        """
        ...

    def events(self, after: int) -> Sequence[ClusterEvent]:
        """Return the events with a larger id, oldest first; only the latest ones are kept."""
        ...

    def watch(self, after: int) -> AsyncIterator[ClusterEvent]:
        """Yield the events with a larger id, and every later one as it happens."""
        ...
