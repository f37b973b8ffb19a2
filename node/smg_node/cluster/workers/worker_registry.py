"""Worker registry of the cluster, bound to this node's fleet: registered on any node, run on all.

    API ─▶ registry ─▶ shared state ─▶ every node's registry ─▶ its fleet

A worker belongs to the cluster. Every change of it (a flag, the API) is written into the shared
state, and the fleet only follows that; so a node that dies, leaves or pauses changes nothing about
workers, and any node can change any worker. Changes that watchers of the shared state report are
noted and applied in `run`, because watchers may not write, and because a thousand changes at once
are one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from smg_node.cluster.workers.shared_port import LoadPort, SharedPort
from smg_node.cluster.workers.shared_verdicts import SharedVerdicts
from smg_node.cluster.workers.worker_specs import fields_of, ids_at, refusals, spec_of, url_of
from smg_node.config.worker_url import WorkerUrl, identity_of, parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.ids import WorkerId
from smg_node.engines.transport.api_key_transport import API_KEY_MAX_CHARACTERS, fits_header
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.workers.worker_spec import DeclaredWorker, former_id_of, ids_named, worker_id_of

if TYPE_CHECKING:
    from smg_mesh.shared import WorkerRecord

Listing: TypeAlias = Literal["static", "file"]
"""What each node says for itself."""

WORKERS_MAX: Final = 16_384
"""Each is a connection and a task on every node; more is refused where it is registered."""
PULSE_S: Final = 0.25
"""Others hear of this node's open calls this often."""
SWEEP_S: Final = 5.0
"""All verdicts are considered again this often, and keys that could not be opened tried again."""
SLICE: Final = 50
"""So many workers are taken up in one turn of the loop, about 5 ms: there may be ten thousand of them."""
PATIENCE_S: Final = 15.0
_FOUND: Final = ("kubernetes", "dns")
"""Sources that know a worker by its address."""

_log = logging.getLogger("smg_node.cluster")


class ClusterRegistry:
    """Writes operators' changes into the shared state, and applies that state to the fleet.

    `load` is where open calls are published and read, where that is not the shared state itself.
    """

    def __init__(
        self,
        shared: SharedPort,
        fleet: Fleet,
        *,
        monotonic_s: Callable[[], float],
        patience_s: float = PATIENCE_S,
        pulse_s: float = PULSE_S,
        load: LoadPort | None = None,
        beside: Callable[[str], int] = lambda worker_id: 0,
    ) -> None:
        self.outlook = SharedVerdicts(shared, heard=fleet.hear)
        self.sticky = shared.sticky
        self.beside = beside
        """Returns how many requests other processes of this node have open at a worker."""
        self._shared = shared
        self._fleet = fleet
        self._monotonic_s = monotonic_s
        self._patience_s = patience_s
        self._pulse_s = pulse_s
        self._load = shared.load if load is None else load
        self._listed: dict[Listing, Mapping[str, WorkerUrl]] = {}
        self._listed_key = ""
        self._listing: dict[Listing, Mapping[str, WorkerUrl]] = {}
        """What is still to be written down of what this node lists."""
        self._troubled: set[str] = set()
        self.tidying: list[Callable[[], Awaitable[None]]] = []
        """Called again and again while there are workers."""
        self._wake = asyncio.Event()
        # Dicts as ordered sets: what changed since `run` looked last.
        self._changed: dict[str, None] = {}
        self._said: dict[str, None] = {}
        self._loads: dict[str, None] = {}
        self._resting = False
        """Whether nothing is open here, so that a call that begins is news."""
        fleet.rely_on(self.outlook, began=self._call_began)
        shared.workers.watch(self._noting(self._changed))
        shared.verdicts.watch(self._noting(self._said))
        self._load.watch(self._noting(self._loads))
        shared.watch_members(lambda names: self._wake.set())
        shared.watch_forgotten(self._list_again)
        shared.watch_held(self._wake.set)

    def _call_began(self) -> None:
        if self._resting:
            self._wake.set()

    def _noting(self, noted: dict[str, None]) -> Callable[[Sequence[str]], None]:
        def note(worker_ids: Sequence[str]) -> None:
            noted.update(dict.fromkeys(worker_ids))
            self._wake.set()

        return note

    # ── What operators want ──────────────────────────────────────────────────

    def list_static(self, urls: Iterable[WorkerUrl], api_key: str = "") -> None:
        """Register exactly these for this node, with that key if any, as soon as the cluster's state is here."""
        self._listed["static"] = {url.identity: url for url in urls}
        self._listed_key = api_key
        self._list_again()

    def list_file(self, urls: Sequence[WorkerUrl]) -> Mapping[str, str]:
        """Register exactly these as what this node's file lists; return what stays away, by endpoint, and why.

        OVERLOADED or INVALID_REQUEST where the state cannot take them.
        """
        self._listed["file"] = listing = {url.identity: url for url in urls}
        held_back = self._list("file", listing)
        why = "an operator removed it; it stays away until it is added again"
        return dict.fromkeys(held_back, why)

    def list_no_file(self) -> None:
        """Say that this node lists no file: what an earlier life listed goes, as soon as the cluster's state is here."""
        self._listed["file"] = {}
        self._list_again()

    def add(self, url: WorkerUrl, *, api_key: str | None = None) -> WorkerId:
        """Register a worker on all nodes; the same again changes nothing, and yet is later than any
        removal.

        A key that is not given stays as it is. OVERLOADED beyond 16,384; INVALID_REQUEST for a key
        that cannot travel.
        """
        workers = self._shared.workers
        worker_id = self._id_of(url)
        found = workers.get(worker_id)
        if found is None and len(workers) >= WORKERS_MAX:
            raise SmgError(ErrorKind.OVERLOADED, f"there are {WORKERS_MAX} workers already")
        with refusals():
            if found is not None and (api_key is None or self._has_key(found, api_key)):
                sealed = found.spec.sealed_key
            else:
                sealed = self._sealed(api_key) if api_key else b""
            # Written also where it changes nothing: a removal that this node has not received yet may be
            # on its way, and what was accepted here must not go with it.
            workers.add(worker_id, "api", spec_of(url, sealed))
        self._apply([worker_id])
        return worker_id

    def change(
        self, worker_id: str, url: WorkerUrl, *, api_key: str | None, draining: bool | None
    ) -> None:
        """Set what `url` gives beside the address; `api_key` "" removes the key, None leaves it."""
        worker_id = self.resolve(worker_id)
        found = self._shared.workers.get(worker_id)
        assert found is not None
        wanted, now = fields_of(url), fields_of(self._declared(found).url)
        fields: dict[str, Any] = {
            name: wanted[name] for name in wanted if wanted[name] != now[name]
        }
        if api_key is not None and not self._has_key(found, api_key):
            fields["sealed_key"] = self._sealed(api_key) if api_key else b""
        with refusals():
            if fields:
                self._shared.workers.change(worker_id, **fields)
            if draining is not None and draining != found.draining:
                self._shared.workers.drain(worker_id, on=draining)
        self._apply([worker_id])

    def drain(self, worker_id: str, *, on: bool) -> None:
        """Stop or resume placing new work there, on all nodes; what runs goes on."""
        worker_id = self.resolve(worker_id)
        with refusals():
            self._shared.workers.drain(worker_id, on=on)
        self._apply([worker_id])

    async def remove(self, worker_id: str, *, force: bool) -> None:
        """Forget a worker on all nodes: no new work at once, open requests end within 180 s.

        Returns when this node's have ended; `force` cuts these.
        """
        worker_id = self.resolve(worker_id)
        with refusals():
            self._shared.workers.remove(worker_id)
        self._apply([worker_id])
        await self._fleet.gone(WorkerId(worker_id), force=force)

    def resolve(self, name: str) -> str:
        """Return the id of the worker with that id or URL; NOT_FOUND `worker_not_found` otherwise."""
        workers = self._shared.workers
        for worker_id in (name, *ids_named(name)):
            if workers.get(worker_id) is not None:
                return worker_id
        found = self._at_address(name)
        if found is not None:
            return found
        raise SmgError(
            ErrorKind.NOT_FOUND, f"no worker is called {name!r}", code="worker_not_found"
        )

    def _at_address(self, name: str) -> str | None:
        """Return the id of the worker that has the address in a URL, under another scheme than one expects."""
        try:
            ids = ids_at(parse_worker_url(name))
        except SmgError:
            return None
        for worker_id in ids:
            record = self._shared.workers.get(worker_id)
            if record is not None and identity_of(record.spec.url) == identity_of(name):
                return worker_id
        return None

    def _id_of(self, url: WorkerUrl) -> WorkerId:
        """Return the worker's id: the one it has already, where the release before this one registered it."""
        workers, worker_id, former = self._shared.workers, worker_id_of(url), former_id_of(url)
        if workers.get(worker_id) is not None:
            return worker_id
        if former != worker_id and workers.get(former):
            return former
        # One that was found by its address alone, or under another scheme, is the same engine.
        for other in ids_at(url):
            record = workers.get(other)
            if record is not None and all(source in _FOUND for source in record.sources):
                return other
        return worker_id

    def others_load(self, worker_id: str) -> tuple[int, int]:
        """Return how many requests and prompt tokens all other nodes have open there."""
        return self._load.other(worker_id)

    # ── Keeping up ───────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Keep the fleet and the shared state in step until cancelled."""
        began_s = swept_s = self._monotonic_s()
        self._changed.update(dict.fromkeys(one.id for one in self._shared.workers.records()))
        while True:
            self._wake.clear()
            now_s = self._monotonic_s()
            if self._listing and (self._shared.held or now_s >= began_s + self._patience_s):
                self._list_now()
            if now_s >= swept_s + SWEEP_S:
                swept_s = now_s
                self._said.update(dict.fromkeys(worker.id for worker in self._fleet.workers()))
                self._changed.update(dict.fromkeys(sorted(self._troubled)))
                for tidy in self.tidying:
                    await tidy()
            await _in_slices(self._changed, self._apply)
            await self.outlook.catch_up()
            await _in_slices(self._said, self._fleet.hear)
            self._hear_loads(_taken(self._loads))
            loads = self._own_loads()
            self._load.publish(loads)
            await self._rest(self._pulse_s if loads or self._listing else None)

    async def _rest(self, most_s: float | None) -> None:
        """Wait for work; a node without open requests and without workers sleeps."""
        self._resting = most_s is None
        if most_s is None and self._fleet.has_workers():
            most_s = SWEEP_S
        try:
            async with asyncio.timeout(most_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _list_again(self) -> None:
        self._listing = dict(self._listed)
        self._wake.set()

    def _list_now(self) -> None:
        for source, listing in list(self._listing.items()):
            try:
                held_back = self._list(source, listing)
            except SmgError as error:
                _log.warning("this node's workers cannot be registered yet: %s", error.message)
                return
            if held_back:
                _log.warning(
                    "%d listed workers were removed by an operator and stay away until they are added"
                    " again: %s",
                    len(held_back),
                    ", ".join(held_back[:8]),
                )

    def _list(self, source: Listing, listing: Mapping[str, WorkerUrl]) -> Sequence[str]:
        """Write down what this node lists, and return the endpoints that stay away."""
        by_id: dict[str, WorkerUrl] = {self._id_of(url): url for url in listing.values()}
        with refusals():
            sealed = self._sealed(self._listed_key) if self._listed_key else b""
            specs = {worker_id: spec_of(url, sealed) for worker_id, url in by_id.items()}
            listed = self._shared.workers.list_own(source, specs, same_key=self._same_key)
        self._listing.pop(source, None)
        self._changed.update(dict.fromkeys([*listed.added, *listed.removed]))
        self._wake.set()
        return [by_id[one].endpoint for one in listed.held_back]

    def _apply(self, worker_ids: Sequence[str]) -> None:
        """Apply the shared state of these workers to the fleet."""
        changes: dict[WorkerId, DeclaredWorker | None] = {}
        for worker_id in worker_ids:
            record = self._shared.workers.get(worker_id)
            self._troubled.discard(worker_id)
            try:
                declared = self._declared(record) if record is not None else None
            except SmgError as error:
                # From a newer version: kept and passed on, but of no use here.
                _log.warning("worker %s cannot be used by this version: %s", worker_id, error)
                declared = None
            if declared is None:
                self.outlook.forget(worker_id)
            elif declared.trouble:
                self._troubled.add(worker_id)
            changes[WorkerId(worker_id)] = declared
        self._fleet.apply(changes)
        self._hear_loads(worker_ids)

    def _hear_loads(self, worker_ids: Sequence[str]) -> None:
        for worker_id in worker_ids:
            requests, tokens = self._load.other(worker_id)
            self._fleet.hear_load(worker_id, requests=requests, tokens=tokens)

    def _own_loads(self) -> Mapping[str, tuple[int, int]]:
        return {
            load.worker: (load.own_inflight, load.own_tokens)
            for load in self._fleet.loads()
            if load.own_inflight
        }

    # ── Records ──────────────────────────────────────────────────────────────

    def _declared(self, record: "WorkerRecord") -> DeclaredWorker:
        """Return a record as the fleet takes it; INVALID_REQUEST if this version cannot read it."""
        spec = record.spec
        said = url_of(spec)
        url = parse_worker_url(str(said))
        api_key = self._shared.open_secret(spec.sealed_key) if spec.sealed_key else None
        unreadable = bool(spec.sealed_key) and (api_key is None or not fits_header(api_key))
        return DeclaredWorker(
            url,
            api_key=None if unreadable else api_key,
            draining=record.draining,
            has_key=bool(spec.sealed_key),
            trouble="its API key cannot be opened with this node's keyring" if unreadable else "",
            sources=tuple(record.sources),
            registered_by=record.registered_by,
            version=record.version,
            state=record.state,
            instance=record.instance,
        )

    def _has_key(self, record: "WorkerRecord", api_key: str) -> bool:
        sealed = record.spec.sealed_key
        return (self._shared.open_secret(sealed) or "") == api_key if sealed else not api_key

    def _same_key(self, sealed: bytes, other: bytes) -> bool:
        """Whether two sealed keys are the same one: sealing gives other bytes each time."""
        return sealed == other or (
            bool(sealed and other)
            and self._shared.open_secret(sealed) == self._shared.open_secret(other) is not None
        )

    def _sealed(self, api_key: str) -> bytes:
        if not fits_header(api_key):
            raise invalid(
                f"an API key is 1 to {API_KEY_MAX_CHARACTERS} printable ASCII characters without"
                " blanks",
                "api_key",
            )
        return self._shared.seal(api_key)


def _taken(noted: dict[str, None], most: int | None = None) -> list[str]:
    """Return the ids that were noted first, and clear them."""
    taken = list(islice(noted, most))
    for one in taken:
        del noted[one]
    return taken


async def _in_slices(noted: dict[str, None], take: Callable[[Sequence[str]], None]) -> None:
    """Pass all that was noted to `take`, some at a time, giving way to the loop between."""
    while noted:
        take(_taken(noted, SLICE))
        if noted:
            await asyncio.sleep(0)
