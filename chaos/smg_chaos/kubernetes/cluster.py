"""Cluster: pods and endpoint slices as an API server keeps them, changed by whoever asks it to or by a test itself."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from smg_chaos.kubernetes import pod_rules
from smg_chaos.kubernetes.answers import KINDS, RefusedError, not_found
from smg_chaos.kubernetes.versions import Backup, Key, Object, Versions
from smg_node.core.ports import Rng
from smg_node.system_clock import system_rng


def wall_time() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class Cluster:
    """All objects. Who waits for a change awaits `changed`."""

    def __init__(self, *, now: Callable[[], datetime] = wall_time, rng: Rng | None = None) -> None:
        self.versions = Versions()
        self.epoch = 0
        """How often a backup was restored: watches from before it end."""
        self._now = now
        self._rng = rng or system_rng()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Return when something was written."""
        await self._changed.wait()

    def create(self, resource: str, namespace: str, said: Object) -> Mapping[str, Any]:
        """Create an object; RefusedError if it is there or has no name."""
        made = pod_rules.created(said, namespace=namespace, uid=self._uid(), now=self._time())
        if resource != "pods":
            api, kind = KINDS[resource]
            made = {**said, "kind": kind, "apiVersion": api, "metadata": made["metadata"]}
        key = (resource, namespace, made["metadata"]["name"])
        if key in self.versions.objects:
            raise RefusedError(409, "AlreadyExists", f'{resource} "{key[2]}" already exists')
        return self._write(key, made)

    def get(self, key: Key) -> Mapping[str, Any]:
        """Return an object; RefusedError if it is not there."""
        found = self.versions.objects.get(key)
        if found is None:
            raise not_found(key[0], key[2])
        return found

    def patch(
        self, key: Key, patch: Mapping[str, Any], *, is_status: bool = False
    ) -> Mapping[str, Any]:
        """Change an object by a merge patch."""
        before = self.get(key)
        if key[0] == "pods":
            after = pod_rules.patched(before, patch, is_status=is_status)
        else:
            after = pod_rules.merged(before, patch)
        # A write that changes nothing is none.
        return before if after == before else self._write(key, after)

    def delete(self, key: Key, grace_s: int | None = None) -> Mapping[str, Any]:
        """Order an object to end, or end it at once where it has no time left."""
        before = self.get(key)
        seconds = pod_rules.grace_s(before, grace_s) if key[0] == "pods" else 0
        if seconds == 0:
            if key[0] == "pods":
                # Both writes come, in the same moment, so that who watches can tell it from a label that moved away.
                self._write(key, pod_rules.terminating(before, 0, self._time()))
            self._write(key, None)
            return before
        if "deletionTimestamp" in before["metadata"]:
            return before
        until = self._time(timedelta(seconds=seconds))
        return self._write(key, pod_rules.terminating(before, seconds, until))

    def compact(self) -> None:
        """Forget all history."""
        self.versions.compact()

    def backup(self) -> Backup:
        """Return all objects as they are."""
        return self.versions.backup()

    def restore(self, backup: Backup) -> None:
        """Go back to a backup: watches end, versions are used again."""
        self.versions.restore(backup)
        self.epoch += 1
        self.tell()

    def tell(self) -> None:
        """Wake up who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _write(self, key: Key, after: Object | None) -> Mapping[str, Any]:
        written = self.versions.write(key, after)
        self.tell()
        return written if written is not None else {}

    def _uid(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))

    def _time(self, later: timedelta = timedelta()) -> str:
        return (self._now() + later).strftime("%Y-%m-%dT%H:%M:%SZ")
