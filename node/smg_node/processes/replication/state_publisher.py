"""State publisher: sends data processes the shared state: a snapshot first, then what changes.

Watchers of the state may not write, and a thousand changes at once are one: so what changed is
noted, and sent a few milliseconds later, read as it is then.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from smg_mesh.shared import CacheRow, SessionRow, Shared
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.replication.namespace_copy import row_of
from smg_node.processes.replication.open_calls import Load, OpenCalls
from smg_node.processes.replication.state_messages import (
    CACHE_ROWS,
    CHANGES,
    NAMESPACES,
    OPEN_CALLS,
    SESSION_ROWS,
    SNAPSHOT,
    STICK,
    Binding,
    CacheRows,
    Changes,
    Node,
    Row,
    SessionRows,
    Sight,
    read,
    write,
)
from smg_node.processes.replication.state_messages import OpenCalls as OpenCallsWord

GATHER_S: Final = 0.005
"""Changes that come together are told together."""
LOOK_S: Final = 0.25
"""So often it is looked whether the node as a whole is what it was."""
REOPEN_S: Final = 5.0
"""Secrets that could not be opened are tried again this often: the keyring may have changed."""
ME: Final = "control"
CACHE_ROWS_MAX: Final = 4_096
"""Rows of prompt caches in one message: 100 KB."""
SESSION_ROWS_MAX: Final = 256
"""Rows of tool sessions in one message: 100 KB as well."""
_Any = TypeVar("_Any")


class Publishing:
    """Publisher of one control process; `node` returns the state of the node as a whole."""

    def __init__(
        self,
        shared: Shared,
        bus: Bus,
        *,
        node: Callable[[], Node],
        monotonic_s: Callable[[], float],
    ) -> None:
        self.calls: Final = OpenCalls()
        self._shared: Final = shared
        self._bus: Final = bus
        self._node_now: Final = node
        self._monotonic_s: Final = monotonic_s
        self._node = Node()
        self._carried: tuple[bytes, ...] = ()
        self._numbers: dict[str, int] = {}
        """What each process was told last."""
        self._wake: Final = asyncio.Event()
        # Dicts as ordered sets: what changed since it was last sent.
        self._keys: dict[str, dict[str, None]] = {name: {} for name in NAMESPACES}
        self._said: dict[str, None] = {}
        self._loads: dict[str, None] = {}
        self._bound: dict[str, None] = {}
        self._cached: dict[tuple[int, int], CacheRow] = {}
        self._sessions: dict[str, SessionRow] = {}
        self._closed_secrets: dict[bytes, None] = {}
        self._reopen_s = 0.0
        self._watching_loads: list[Callable[[Sequence[str]], None]] = []
        for name in NAMESPACES:
            shared.namespace(name).watch(self._noting(self._keys[name]))
        shared.verdicts.watch(self._noting(self._said))
        shared.load.watch(self._noting(self._loads))
        shared.sticky.watch(self._noting(self._bound))
        shared.prompt_caches.watch(self._note_cached)
        shared.tool_sessions.watch(self._note_sessions)
        bus.opened(self._begin)
        bus.closed(self._end)
        bus.died(lambda process: self._take_calls(process, {}))
        bus.on(OPEN_CALLS, self._hear_calls)
        bus.on(STICK, self._hear_binding)
        bus.on(CACHE_ROWS, self._hear_cached)
        bus.on(SESSION_ROWS, self._hear_sessions)

    def _noting(self, noted: dict[str, None]) -> Callable[[Sequence[str]], None]:
        def note(keys: Sequence[str]) -> None:
            noted.update(dict.fromkeys(keys))
            self._wake.set()

        return note

    async def run(self) -> None:
        """Send changes until cancelled."""
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._wake.wait()
                await asyncio.sleep(GATHER_S)
            except TimeoutError:
                pass
            self._wake.clear()
            self._tell_changes()

    # ── Telling ──────────────────────────────────────────────────────────────

    def _begin(self, process: str) -> None:
        """Send a new process everything."""
        shared, node = self._shared, self._node_now()
        rows = {name: self._all_rows(name) for name in NAMESPACES}
        worker_ids = [record.id for record in shared.workers.records()]
        said = Changes(
            0,
            rows=rows,
            sights={one: self._sights(one) for one in worker_ids},
            calls=self._calls_for(process, worker_ids),
            bindings=tuple(self._binding(row.key) for row in shared.sticky.rows()),
            secrets={**self._secrets(worker_ids), **self._opened(shared.providers.sealed())},
            node=node,
            carried=shared.carried_keys(),
        )
        self._numbers[process] = 0
        self._bus.tell(process, SNAPSHOT, write(said))
        if len(shared.prompt_caches):
            for some in batched(shared.prompt_caches.rows(), CACHE_ROWS_MAX):
                self._bus.tell(process, CACHE_ROWS, write(CacheRows(some)))
        if len(shared.tool_sessions):
            for part in batched(shared.tool_sessions.rows(), SESSION_ROWS_MAX):
                self._bus.tell(process, SESSION_ROWS, write(SessionRows(part)))

    def _end(self, process: str) -> None:
        self._numbers.pop(process, None)

    def _note_cached(self, rows: Sequence[CacheRow]) -> None:
        if self._numbers:
            self._cached.update({(row.beginning, row.scope): row for row in rows})
            self._wake.set()

    def _hear_cached(self, _process: str, content: bytes) -> None:
        caches = self._shared.prompt_caches
        for row in read(content, CacheRows).rows:
            if row.life_ms:
                caches.put(row)
            else:
                caches.remove(row.beginning, row.scope)

    def _note_sessions(self, rows: Sequence[SessionRow]) -> None:
        if self._numbers:
            self._sessions.update({row.key: row for row in rows})
            self._wake.set()

    def _hear_sessions(self, _process: str, content: bytes) -> None:
        sessions = self._shared.tool_sessions
        for row in read(content, SessionRows).rows:
            if row.content:
                sessions.put(row)
            else:
                sessions.remove(row.key)

    def _tell_sessions(self) -> None:
        for rows in batched(self._sessions.values(), SESSION_ROWS_MAX):
            for process in self._numbers:
                self._bus.tell(process, SESSION_ROWS, write(SessionRows(rows)))
        self._sessions.clear()

    def _tell_cached(self) -> None:
        for rows in batched(self._cached.values(), CACHE_ROWS_MAX):
            for process in self._numbers:
                self._bus.tell(process, CACHE_ROWS, write(CacheRows(rows)))
        self._cached.clear()

    def _tell_changes(self) -> None:
        if self._cached:
            self._tell_cached()
        if self._sessions:
            self._tell_sessions()
        node, carried = self._node_now(), self._shared.carried_keys()
        rows = {name: self._rows(name, list(noted)) for name, noted in self._keys.items() if noted}
        loads = list(self._loads)
        providers = self._opened(self._shared.providers.sealed()) if self._keys["providers"] else {}
        changed_workers = [key.partition("/")[0] for key in self._keys["workers"]]
        said = Changes(
            0,
            rows=rows,
            sights={one: self._sights(one) for one in self._said},
            bindings=tuple(self._binding(key) for key in self._bound),
            secrets={**self._reopened(), **self._secrets(changed_workers), **providers},
            node=node if node != self._node else None,
            carried=carried if carried != self._carried else None,
        )
        self._node, self._carried = node, carried
        for noted in (*self._keys.values(), self._said, self._loads, self._bound):
            noted.clear()
        if said == Changes(0) and not loads:
            return
        for process, number in self._numbers.items():
            self._numbers[process] = number + 1
            told = _numbered(said, number + 1, self._calls_for(process, loads))
            self._bus.tell(process, CHANGES, write(told))

    def _all_rows(self, name: str) -> dict[str, Row | None]:
        keys = [held.key for held in self._shared.namespace(name).items()]
        return self._rows(name, keys)

    def _rows(self, name: str, keys: Sequence[str]) -> dict[str, Row | None]:
        """Return these entries, and for parts of a worker the entry of the whole worker: it may be
        a removal.
        """
        namespace = self._shared.namespace(name)
        wanted = [*keys, *(key.partition("/")[0] for key in keys if name == "workers")]
        return {key: row_of(namespace.latest(key)) for key in wanted}

    def _sights(self, worker_id: str) -> tuple[Sight, ...]:
        said = self._shared.verdicts.of(worker_id)
        return tuple(Sight(one.node, one.up, one.reason, one.age_ms) for one in said)

    def _binding(self, key: str) -> Binding:
        row = self._shared.sticky.row(key)
        if row is None:
            return Binding(key, "")
        return Binding(key, row.worker, row.why, row.node, row.time_ms, row.expires_ms)

    def _secrets(self, worker_ids: Sequence[str]) -> dict[bytes, str | None]:
        records = (self._shared.workers.get(worker_id) for worker_id in dict.fromkeys(worker_ids))
        return self._opened([one.spec.sealed_key for one in records if one is not None])

    def _opened(self, sealed: Sequence[bytes]) -> dict[bytes, str | None]:
        opened = {one: self._shared.open_secret(one) for one in sealed if one}
        for one, secret in opened.items():
            if secret is None:
                self._closed_secrets[one] = None
            else:
                self._closed_secrets.pop(one, None)
        return opened

    def _reopened(self) -> dict[bytes, str | None]:
        now_s = self._monotonic_s()
        if not self._closed_secrets or now_s < self._reopen_s:
            return {}
        self._reopen_s = now_s + REOPEN_S
        opened = self._opened(list(self._closed_secrets))
        return {one: secret for one, secret in opened.items() if secret is not None}

    # ── What is open, and where ──────────────────────────────────────────────

    def publish(self, loads: Mapping[str, Load]) -> None:
        """Take what the control process itself has open; this and the next two are a `LoadPort` for its registry."""
        self._take_calls(ME, loads)

    def other(self, worker_id: str) -> Load:
        """Return what all others than the control process have open there."""
        return self._others(ME, worker_id)

    def beside(self, worker_id: str) -> int:
        """Return how many requests the data processes of this node have open there."""
        return self.calls.others(ME, worker_id)[0]

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Call `heard` with the workers on which others have more or less open than before."""
        self._watching_loads.append(heard)
        self._shared.load.watch(heard)

    def _others(self, process: str, worker_id: str) -> Load:
        here, elsewhere = self.calls.others(process, worker_id), self._shared.load.other(worker_id)
        return (here[0] + elsewhere[0], here[1] + elsewhere[1])

    def _calls_for(self, process: str, worker_ids: Sequence[str]) -> dict[str, Load]:
        return {worker_id: self._others(process, worker_id) for worker_id in worker_ids}

    def _hear_calls(self, process: str, content: bytes) -> None:
        self._take_calls(process, read(content, OpenCallsWord).loads)

    def _take_calls(self, process: str, loads: Mapping[str, Load]) -> None:
        changed = self.calls.set(process, loads)
        if changed or process == ME:
            # Said again also where it is the same: what is not said again lapses elsewhere.
            self._shared.load.publish(self.calls.total)
        if changed:
            self._noting(self._loads)(changed)
            if process != ME:
                for heard in self._watching_loads:
                    heard(changed)

    def _hear_binding(self, _process: str, content: bytes) -> None:
        said, sticky = read(content, Binding), self._shared.sticky
        if not said.worker:
            sticky.release(said.key)
        elif sticky.worker_of(said.key) == said.worker:
            sticky.touch(said.key)
        else:
            sticky.bind(said.key, said.worker, said.why)


def batched(rows: Iterable[_Any], count: int) -> Iterator[tuple[_Any, ...]]:
    """Yield the rows, as many together as one message should have."""
    left = iter(rows)
    while some := tuple(islice(left, count)):
        yield some


def _numbered(said: Changes, number: int, calls: dict[str, Load]) -> Changes:
    return Changes(
        number,
        said.rows,
        said.sights,
        calls,
        said.bindings,
        said.secrets,
        said.node,
        said.carried,
    )
