"""Discovered workers: what sources found, as the registry has it, and what they find, written into it.

Entries of a kind are kept by endpoint and read again when the registry says that their worker changed. The moment at
which this node heard of a change is noted, as is what other nodes dropped a while ago: whoever has an older view of the
source can then tell.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from smg_node.cluster.workers.worker_registry import WORKERS_MAX, ClusterRegistry
from smg_node.cluster.workers.worker_specs import ids_at, refusals, spec_of, url_of
from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.discovery.known import Dropped, Known
from smg_node.discovery.sighting import Endpoint, Sighting, SightingState

if TYPE_CHECKING:
    from smg_mesh.shared import WorkerRecord, WorkerSpec

SharedKind: TypeAlias = Literal["kubernetes", "dns"]
KINDS: Final[tuple[SharedKind, ...]] = ("kubernetes", "dns")
DROPPED_KEPT_MS: Final = 120_000
"""Longer than any view counts that could bring back what was dropped."""
DROPPED_MAX: Final = WORKERS_MAX
READ_MAX: Final = 100
"""So many entries are read in one step."""


class Finding(Protocol):
    """Port to what a shared source says of a worker."""

    @property
    def worker_id(self) -> str:
        """The worker."""
        ...

    @property
    def name(self) -> str:
        """Which source of its kind says so."""
        ...

    @property
    def spec(self) -> "WorkerSpec":
        """How the worker is reached and used, by that source alone."""
        ...

    @property
    def state(self) -> str:
        """Whether it is ready, unready or leaving."""
        ...

    @property
    def instance(self) -> str:
        """Which engine is there."""
        ...

    @property
    def counts(self) -> bool:
        """Whether it is a reason why the worker exists; otherwise an operator removed the worker."""
        ...

    @property
    def exists(self) -> bool:
        """Whether the worker does, by whichever word."""
        ...

    @property
    def by(self) -> str:
        """The node that wrote it."""
        ...

    @property
    def version(self) -> int:
        """The hybrid time of the write."""
        ...

    @property
    def keep(self) -> bool:
        """Whether the worker stays when the source is in no settings any more."""
        ...

    @property
    def released(self) -> bool:
        """Whether the source shows it no more, and another one may have it."""
        ...


class FindingsPort(Protocol):
    """Port to what the shared state holds of findings; `smg_mesh.shared.WorkerRegistry` fits."""

    def get(self, worker_id: str) -> "WorkerRecord | None":
        """Return a worker, None if there is none."""
        ...

    def shared(self) -> Sequence[str]:
        """Return the ids of workers about which shared sources say something."""
        ...

    def found(self, worker_id: str, source: SharedKind) -> Finding | None:
        """Return what a shared source says of a worker."""
        ...

    def find(
        self,
        worker_id: str,
        source: SharedKind,
        spec: "WorkerSpec",
        *,
        name: str,
        state: str,
        instance: str,
        keep: bool = False,
        released: bool = False,
    ) -> object:
        """Say that a shared source shows a worker, or showed it and lets others have it."""
        ...

    def inherit(self, worker_id: str, source: SharedKind, *, name: str) -> bool:
        """Let the source `name` remember that an operator removed it, in place of another one of that kind."""
        ...

    def drop(self, worker_id: str, source: SharedKind) -> bool:
        """Say that a shared source does not show it any more."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the ids of workers that came, changed or went."""
        ...

    def __len__(self) -> int:
        """Return the number of workers."""
        ...


class DiscoveredWorkers:
    """Workers of all sources, as one node reads and writes them."""

    def __init__(
        self,
        findings: FindingsPort,
        registry: ClusterRegistry,
        *,
        me: str,
        is_held: Callable[[], bool],
        now_ms: Callable[[], int],
    ) -> None:
        self._findings: Final = findings
        self._registry: Final = registry
        self._me: Final = me
        self._is_held: Final = is_held
        self._now_ms: Final = now_ms
        self._known: Final[dict[str, dict[Endpoint, Known]]] = {kind: {} for kind in KINDS}
        self._places: Final[dict[tuple[str, str], Endpoint]] = {}
        """By kind and worker: under which endpoint it is known."""
        self._dropped: Final[dict[str, dict[Endpoint, Dropped]]] = {kind: {} for kind in KINDS}
        self._dropping = False
        self._stale: dict[str, int] = dict.fromkeys(findings.shared(), now_ms())
        """What is to be read again, with when it was heard of."""
        findings.watch(self._heard)

    # ── Reading ──────────────────────────────────────────────────────────────

    @property
    def held(self) -> bool:
        """Whether the cluster's state is here, so that it may be written to."""
        return self._is_held()

    def catch_up(self) -> Generator[float, None, None]:
        """Read what changed since the last look, yielding 0.0 between steps of a millisecond or two."""
        while len(self._stale) > READ_MAX:
            for worker_id in list(islice(self._stale, READ_MAX)):
                self._look_at(worker_id, self._stale.pop(worker_id))
            yield 0.0

    def known(self, kind: str) -> Mapping[Endpoint, Known]:
        """Return what sources of a kind have registered, by endpoint, as it is now."""
        self._look()
        return self._known[kind]

    def dropped(self, kind: str) -> Mapping[Endpoint, Dropped]:
        """Return what other nodes found gone in the last minutes."""
        self._look()
        dropped, since_ms = self._dropped[kind], self._now_ms() - DROPPED_KEPT_MS
        # The order is that of time.
        for endpoint in list(islice(dropped, len(dropped))):
            if dropped[endpoint].heard_ms >= since_ms and len(dropped) <= DROPPED_MAX:
                break
            del dropped[endpoint]
        return dropped

    def room(self) -> int:
        """Return how many more workers there may be."""
        return max(0, WORKERS_MAX - len(self._findings))

    def calls_up(self, worker_id: str) -> bool:
        """Return whether some prober calls that worker up, or none has judged it yet: so it is after a restart."""
        sights = self._registry.outlook.sights(worker_id)
        if not sights:
            return self._findings.get(worker_id) is not None
        return any(sight.up for sight in sights)

    def called_down(self, kind: str, endpoint: Endpoint) -> bool:
        """Return whether a prober calls what is registered there down, and none calls it up."""
        known = self.known(kind).get(endpoint)
        sights = [] if known is None else self._registry.outlook.sights(known.worker_id)
        return bool(sights) and not any(sight.up for sight in sights)

    def urls_of(self, kind: str, name: str) -> Mapping[Endpoint, WorkerUrl]:
        """Return what a source has registered, by endpoint."""
        known = self.known(kind)
        return {one: known[one].url for one in known if known[one].owner == name}

    # ── Writing ──────────────────────────────────────────────────────────────

    def put(self, kind: str, name: str, sighting: Sighting, *, keep: bool = False) -> None:
        """Register what a source shows, or change it to that; SmgError if the state cannot take it."""
        source = _shared(kind)
        worker_id = self._target(sighting.url)
        if self._findings.get(worker_id) is None and not self.room():
            raise SmgError(ErrorKind.OVERLOADED, f"there are {WORKERS_MAX} workers already")
        with refusals():
            self._findings.find(
                worker_id,
                source,
                spec_of(sighting.url),
                name=name,
                state=sighting.state.value,
                instance=sighting.instance,
                keep=keep,
            )
            for other in ids_at(sighting.url):
                if other != worker_id and self._findings.found(other, source) is not None:
                    self._findings.drop(other, source)

    def release(self, kind: str, endpoint: Endpoint) -> None:
        """Let other sources of that kind have an endpoint: its entry says the same, and who said so lets go of it."""
        source, known = _shared(kind), self.known(kind).get(endpoint)
        found = None if known is None else self._findings.found(known.worker_id, source)
        if known is None or found is None:
            return
        with refusals():
            self._findings.find(
                known.worker_id,
                source,
                found.spec,
                name=found.name,
                state=found.state,
                instance=found.instance,
                keep=found.keep,
                released=True,
            )

    def inherit(self, kind: str, name: str, endpoint: Endpoint) -> None:
        """Let a source remember what an operator removed, in place of another one of that kind."""
        known = self.known(kind).get(endpoint)
        if known is not None:
            with refusals():
                self._findings.inherit(known.worker_id, _shared(kind), name=name)

    def drop(self, kind: str, endpoint: Endpoint) -> None:
        """Say that sources of that kind do not show the endpoint any more."""
        source, known = _shared(kind), self.known(kind).get(endpoint)
        if known is None:
            return
        self._dropping = True
        try:
            with refusals():
                for worker_id in dict.fromkeys((known.worker_id, *ids_at(known.url))):
                    if self._findings.found(worker_id, source) is not None:
                        self._findings.drop(worker_id, source)
                        self._stale[worker_id] = self._now_ms()
            self._look()
        finally:
            self._dropping = False

    def list_file(self, urls: Sequence[WorkerUrl]) -> Mapping[Endpoint, str]:
        """Say that this node's file lists exactly these; return what is not registered, and why."""
        return self._registry.list_file(urls)

    # ── Inside ───────────────────────────────────────────────────────────────

    def _heard(self, worker_ids: Sequence[str]) -> None:
        self._stale.update(dict.fromkeys(worker_ids, self._now_ms()))

    def _target(self, url: WorkerUrl) -> str:
        """Return the id to write under: that of the worker which is there by another word, whatever its scheme."""
        ids = ids_at(url)
        for worker_id in ids:
            record = self._findings.get(worker_id)
            if record is not None and any(one not in KINDS for one in record.sources):
                return worker_id
        for worker_id in ids:
            if self._findings.get(worker_id) is not None:
                return worker_id
        return ids[0]

    def _look(self) -> None:
        """Read what changed since the last look."""
        while self._stale:
            stale, self._stale = self._stale, {}
            for worker_id, heard_ms in stale.items():
                self._look_at(worker_id, heard_ms)

    def _look_at(self, worker_id: str, heard_ms: int) -> None:
        for kind in KINDS:
            self._read(worker_id, kind, heard_ms)
        record = self._findings.get(worker_id)
        if record is None or all(source in KINDS for source in record.sources):
            return
        # What was found under another scheme belongs to it.
        for other in ids_at(parse_worker_url(record.spec.url)):
            for kind in KINDS:
                place = self._places.get((kind, other))
                before = None if place is None else self._known[kind].get(place)
                if before is not None and other != worker_id:
                    self._read(other, kind, before.heard_ms)

    def _read(self, worker_id: str, kind: SharedKind, now_ms: int) -> None:
        found, known = self._findings.found(worker_id, kind), self._known[kind]
        place = self._places.get((kind, worker_id))
        before = None if place is None else known.get(place)
        after = None if found is None else self._entry(found, now_ms)
        if after is not None and before is not None:
            # What changed beside the entry, by another source's word, is no news of this one; nor is that it lets go.
            own = before.own if after.released else after.own
            told = replace(after, exists=before.exists, released=before.released, own=own)
            if replace(after, heard_ms=before.heard_ms) == before:
                return
            if replace(told, heard_ms=before.heard_ms) == before:
                after = replace(after, heard_ms=before.heard_ms)
        if place is not None and (after is None or after.endpoint != place):
            if before is not None and before.worker_id == worker_id:
                del known[place]
                self._note_dropped(kind, before, now_ms)
            del self._places[kind, worker_id]
        if after is not None:
            known[after.endpoint] = after
            self._places[kind, worker_id] = after.endpoint
            self._dropped[kind].pop(after.endpoint, None)

    def _note_dropped(self, kind: str, before: Known, now_ms: int) -> None:
        if self._dropping:
            return
        dropped = self._dropped[kind]
        dropped.pop(before.endpoint, None)
        dropped[before.endpoint] = Dropped(before.instance, now_ms)

    def _entry(self, found: Finding, now_ms: int) -> Known | None:
        """Return an entry as discovery knows it; None for one that this version cannot read."""
        spec = found.spec
        try:
            url = url_of(spec)
        except SmgError:
            return None
        return Known(
            found.worker_id,
            url,
            SightingState(found.state),
            found.instance,
            found.name,
            now_ms,
            withheld=not found.counts,
            exists=found.exists,
            misplaced=self._target(url) != found.worker_id,
            own=found.by == self._me,
            keep=found.keep,
            released=found.released,
        )


def _shared(kind: str) -> SharedKind:
    assert kind in KINDS
    return "kubernetes" if kind == "kubernetes" else "dns"
