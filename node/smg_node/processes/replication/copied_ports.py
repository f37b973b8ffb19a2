"""Copied ports of a data process: verdicts, load and sticky keys, sent by its control process.

The ports of `cluster.workers.shared_port`, each over what the control process sent last.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.state_messages import (
    OPEN_CALLS,
    STICK,
    Binding,
    OpenCalls,
    Sight,
    write,
)

Heard = Callable[[Sequence[str]], None]
TOUCH_MS: Final = 1_500_000
"""A binding in use is said to be so every 25 minutes: elsewhere it is written down every half an hour."""


class CopiedVerdicts:
    """Members' verdicts; `hold` says whether they still count."""

    def __init__(self, hold: Callable[[], bool]) -> None:
        self._hold: Final = hold
        self._of: dict[str, tuple[Sight, ...]] = {}
        self._watching: list[Heard] = []

    def replace(self, sights: Mapping[str, tuple[Sight, ...]]) -> None:
        """Hold exactly these."""
        before, self._of = self._of, {}
        self.change({**dict.fromkeys(before, ()), **sights})

    def change(self, sights: Mapping[str, tuple[Sight, ...]]) -> None:
        """Take these workers' new verdicts, and notify watchers."""
        for worker_id, said in sights.items():
            if said:
                self._of[worker_id] = said
            else:
                self._of.pop(worker_id, None)
        self._tell(sorted(sights))

    def tell_all(self) -> None:
        """Notify watchers that any verdict may have changed."""
        self._tell(sorted(self._of))

    def _tell(self, worker_ids: Sequence[str]) -> None:
        if worker_ids:
            for heard in self._watching:
                heard(worker_ids)

    def of(self, worker_id: str) -> Sequence[Sight]:
        """Return the verdicts that are fresh."""
        return self._of.get(worker_id, ()) if self._hold() else ()

    def watch(self, heard: Heard) -> None:
        """Report the ids of workers whose verdicts are new or gone."""
        self._watching.append(heard)

    def publish(self, worker_id: str, *, up: bool, reason: str, ttl_ms: int) -> None:
        """Do nothing: members give verdicts, and a data process is none."""

    def forget(self, worker_id: str) -> None:
        """Do nothing: nothing was published."""


class CopiedLoad:
    """Open calls of all others, and those of this process."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink: Final = uplink
        self._others: dict[str, tuple[int, int]] = {}
        self._own: Mapping[str, tuple[int, int]] = {}
        self._watching: list[Heard] = []
        uplink.opened(self._say)

    def replace(self, loads: Mapping[str, tuple[int, int]]) -> None:
        """Hold exactly these of the others."""
        before, self._others = self._others, {}
        self.change({**dict.fromkeys(before, (0, 0)), **loads})

    def change(self, loads: Mapping[str, tuple[int, int]]) -> None:
        """Take the others' new load on these workers, and notify watchers."""
        for worker_id, load in loads.items():
            if any(load):
                self._others[worker_id] = load
            else:
                self._others.pop(worker_id, None)
        if loads:
            worker_ids = sorted(loads)
            for heard in self._watching:
                heard(worker_ids)

    def publish(self, loads: Mapping[str, tuple[int, int]]) -> None:
        """Report what this process has open, where that is new."""
        if loads != self._own:
            self._own = dict(loads)
            self._say()

    def _say(self) -> None:
        self._uplink.tell(OPEN_CALLS, write(OpenCalls(dict(self._own))))

    def other(self, worker_id: str) -> tuple[int, int]:
        """Return the sum of what all others have open there."""
        return self._others.get(worker_id, (0, 0))

    def watch(self, heard: Heard) -> None:
        """Report the ids of workers on which others have more or less open than before."""
        self._watching.append(heard)


class CopiedSticky:
    """Bindings of routing keys. A change made here counts here at once, and elsewhere a moment
    later.
    """

    def __init__(self, uplink: Uplink, now_ms: Callable[[], int]) -> None:
        self._uplink: Final = uplink
        self._now_ms: Final = now_ms
        self._rows: dict[str, Binding] = {}
        self._counts: dict[str, int] = {}

    def replace(self, bindings: Sequence[Binding]) -> None:
        """Hold exactly these."""
        self._rows.clear()
        self._counts.clear()
        self.change(bindings)

    def change(self, bindings: Sequence[Binding]) -> None:
        """Hold these as they are now."""
        for binding in bindings:
            self._put(binding)

    def _put(self, binding: Binding) -> None:
        before = self._rows.pop(binding.key, None)
        if before is not None:
            self._count(before.worker, -1)
        if binding.worker:
            self._rows[binding.key] = binding
            self._count(binding.worker, 1)

    def _count(self, worker_id: str, more: int) -> None:
        count = self._counts.get(worker_id, 0) + more
        if count:
            self._counts[worker_id] = count
        else:
            del self._counts[worker_id]

    def _say(self, binding: Binding) -> None:
        self._uplink.tell(STICK, write(binding))

    def row(self, key: str) -> Binding | None:
        """Return all fields of a binding."""
        found = self._rows.get(key)
        if found is not None and found.expires_ms and found.expires_ms <= self._now_ms():
            return None
        return found

    def worker_of(self, key: str) -> str | None:
        """Return the worker a key is bound to."""
        found = self.row(key)
        return None if found is None else found.worker

    def keys_at(self, worker_id: str) -> int:
        """Return how many keys are bound to a worker, about."""
        return self._counts.get(worker_id, 0)

    def bind(self, key: str, worker_id: str, why: str = "") -> None:
        """Bind a key, whatever it was bound to before."""
        binding = Binding(key, worker_id, why, time_ms=self._now_ms())
        self._put(binding)
        self._say(binding)

    def touch(self, key: str) -> None:
        """Note that a bound key is in use; that is reported seldom."""
        found, now_ms = self.row(key), self._now_ms()
        if found is not None and now_ms - found.time_ms >= TOUCH_MS:
            touched = Binding(key, found.worker, found.why, found.node, now_ms, found.expires_ms)
            self._put(touched)
            self._say(touched)

    def release(self, key: str) -> None:
        """Take a binding away."""
        gone = Binding(key, "")
        self._put(gone)
        self._say(gone)


class CopiedRunning:
    """Reports of the settings nodes run: the control process reports for its data processes."""

    def publish(self, **facts: str) -> None:
        """Do nothing."""

    def all(self) -> Mapping[str, Mapping[str, Any]]:
        """Return nothing: that is asked of the control process."""
        return {}
