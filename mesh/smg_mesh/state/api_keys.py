"""API keys of the whole cluster: made on any node, good on all, and
worthless everywhere once revoked.

A key is one entry, written twice in its life: when it is made and when it is revoked. What is kept of its
secret is a digest. A revoked key stays for a while, so that it can be listed, and then goes.

**Closed or open.** As long as there is no admin key the cluster is open to those beside it. The
entry of an admin key closes it, also when that key is revoked or has expired: were it otherwise, a
node that heard of the revocation of the old key before it heard of the new one would be open in
between, and so would all of them on the day the last one expires. Only `open_again` opens it, and
only because an operator says so.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_mesh.crdt.namespace import Heard, Namespace, StateError
from smg_mesh.state.key_record import (
    ADMIN,
    DIGEST_BYTES,
    FOREIGN,
    TENANT_PATTERN,
    KeyRecord,
    Role,
    encode_key,
    read_key,
)
from smg_mesh.state.unknown_versions import Unreadable, unreadable

__all__ = ["DIGEST_BYTES", "FOREIGN", "KEYS_MAX", "TENANT_PATTERN", "KeyRecord", "Keys", "Role"]

KEYS_MAX: Final = 10_000
"""Revoked ones too; a record takes about 300 bytes on every node."""
REVOKED_KEEP_MS: Final = 30 * 86_400_000
"""So long a revoked key is listed."""


class Keys:
    """The namespace `keys` as this node reads and writes it. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace
        self._records: dict[str, KeyRecord] = {}
        self._admins: dict[str, None] = {}
        self._foreign: dict[str, None] = {}
        self._strange: dict[str, Unreadable] = {}
        self._heard: list[Heard] = []
        self._look_at([held.key for held in namespace.items()])
        namespace.watch(self._look_at)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, key_id: str) -> KeyRecord | None:
        """Return a key, also one that is not good any more; None if there is none."""
        return self._records.get(key_id)

    def records(self) -> Sequence[KeyRecord]:
        """Return all keys, revoked and expired ones too, sorted by id."""
        return [self._records[key_id] for key_id in sorted(self._records)]

    @property
    def closed(self) -> bool:
        """Whether an admin key was ever made, since the cluster was last opened on purpose."""
        return bool(self._admins)

    @property
    def foreign(self) -> bool:
        """Whether there is a key of another gateway, be it one that is revoked."""
        return bool(self._foreign)

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by id; it is kept and passed on."""
        return [self._strange[key_id] for key_id in sorted(self._strange)]

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the ids of keys that came, changed or went. It may read and must not write."""
        self._heard.append(heard)

    def __len__(self) -> int:
        return len(self._records)

    # ── Writing ──────────────────────────────────────────────────────────────

    def add(self, record: KeyRecord, *, wall_ms: int) -> KeyRecord:
        """Write a new key; ValueError for one that no caller could use, StateError
        "full", or "stale" if it is there.

        Keys that were revoked long ago make room.
        """
        self.make_room(1, wall_ms=wall_ms)
        return self.put(record)

    def make_room(self, count: int, *, wall_ms: int) -> None:
        """Return if so many more keys fit, once those that were revoked long ago are gone; StateError "full"."""
        self._tidy(wall_ms)
        room = KEYS_MAX - len(self._namespace)
        if room < count:
            left = "no more fit" if room <= 0 else f"{room} more fit, and not {count}"
            raise StateError("full", f"there may be {KEYS_MAX} keys; {left}")

    def put(self, record: KeyRecord) -> KeyRecord:
        """Write a new key, for which there is room; errors as of `add`."""
        if len(record.digest) != DIGEST_BYTES or record.revoked_ms:
            raise ValueError("a new key has a digest and is not revoked")
        self._namespace.put(record.id, encode_key(record), seen=0)
        return record

    def revoke(self, key_id: str, *, wall_ms: int) -> KeyRecord:
        """Make a key worthless everywhere, and return it as it is now; LookupError if there is none."""
        record = self._records[key_id]
        if record.revoked_ms:
            return record
        # A clock at the beginning of its time must not write "never".
        revoked = _revoked(record, max(1, wall_ms))
        self._namespace.put(key_id, encode_key(revoked))
        return revoked

    def forget(self, key_id: str) -> None:
        """Take away the record of a revoked key before its time; LookupError if there is none, ValueError for one that is
        good, that closes the cluster, or that another gateway's import would make good again.
        """
        record = self._records[key_id]
        if not record.revoked_ms or record.role == ADMIN or record.foreign:
            raise ValueError(f"key {key_id} stays known")
        self._namespace.remove(key_id)

    def open_again(self) -> None:
        """Forget every admin key, and with them that the cluster was closed."""
        for key_id in sorted(self._admins):
            self._namespace.remove(key_id)

    def _tidy(self, wall_ms: int) -> None:
        """Remove what was revoked long ago; of admin keys only while another one keeps the cluster closed."""
        stays = any(not self._records[key_id].revoked_ms for key_id in self._admins)
        for record in self.records():
            old = record.revoked_ms and wall_ms - record.revoked_ms > REVOKED_KEEP_MS
            if old and (record.role != ADMIN or stays):
                self._namespace.remove(record.id)

    # ── Following ────────────────────────────────────────────────────────────

    def _look_at(self, key_ids: Sequence[str]) -> None:
        for key_id in key_ids:
            self._forget(key_id)
            held = self._namespace.get(key_id)
            if held is None:
                continue
            try:
                record, strange = read_key(held)
            except ValueError as error:
                self._strange[key_id] = unreadable(held, "value", str(error))
                continue
            if strange:
                self._strange[key_id] = unreadable(held, "fields", ", ".join(strange))
            self._records[key_id] = record
            if record.role == ADMIN:
                self._admins[key_id] = None
            if record.foreign:
                self._foreign[key_id] = None
        for heard in self._heard:
            heard(key_ids)

    def _forget(self, key_id: str) -> None:
        self._records.pop(key_id, None)
        self._admins.pop(key_id, None)
        self._foreign.pop(key_id, None)
        self._strange.pop(key_id, None)


def _revoked(record: KeyRecord, wall_ms: int) -> KeyRecord:
    return replace(record, digest=b"", revoked_ms=wall_ms)
