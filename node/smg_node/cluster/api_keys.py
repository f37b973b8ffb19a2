"""API keys of this node: those replicated in the cluster, and those of its own admin key file."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from smg_mesh.shared import KeyRecord, StateError
from smg_node.access.api_key import (
    ID_ALPHABET,
    ID_CHARACTERS,
    SECRET_ALPHABET,
    SECRET_CHARACTERS,
    digest_of,
    fingerprint_of,
    key_text,
)
from smg_node.cluster.admin_key_file import FileKeys
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.keys import KEYS_FORM, KeyRequest, KeyView, NewKey, RevokedKey

Chance = Callable[[int, str], str]
"""Returns so many characters of an alphabet, that nobody can guess."""
_LAST: Final = (
    "this is the last admin key that is good: without it data is open to everyone again, and the admin API"
    " answers loopback only; force it (?force=true, --force) if that is meant"
)
_RESTRICTED: Final = (
    "the first admin key closes the cluster, so it cannot be a restricted one, which may let nobody in;"
    " make one without restrictions first"
)
_FIRST_ROLES: Final = ("user", "operator", "admin")
"""Those that every version reads."""
_FILE: Final = "the key comes from a file of this node (auth.admin_key_file); take it out of there"

_log = logging.getLogger("smg_node.cluster")


class KeyStore(Protocol):
    """Port to the replicated keys; `smg_mesh.shared` has them."""

    def get(self, key_id: str) -> KeyRecord | None:
        """Return a key, also one that is no longer good."""
        ...

    def records(self) -> Sequence[KeyRecord]:
        """Return all keys, sorted by id."""
        ...

    @property
    def closed(self) -> bool:
        """Whether an admin key was ever made, since the cluster was last opened on purpose."""
        ...

    def add(self, record: KeyRecord, *, wall_ms: int) -> KeyRecord:
        """Write a new key."""
        ...

    def revoke(self, key_id: str, *, wall_ms: int) -> KeyRecord:
        """Make a key worthless everywhere; LookupError."""
        ...

    def open_again(self) -> None:
        """Forget every admin key."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the ids of keys that came, changed or went."""
        ...

    def __len__(self) -> int:
        """Return the number of keys."""
        ...


@dataclass(frozen=True, slots=True)
class KeyContext:
    """What keys depend on: wall clock, randomness, whether this node holds the cluster's state."""

    wall_ms: Callable[[], int]
    chance: Chance
    held: Callable[[], bool]


class ClusterKeys:
    """Service and source of API keys. `settled` and `closed` decide whether the node asks for keys
    at all.
    """

    def __init__(self, store: KeyStore, ground: KeyContext, file: FileKeys | None = None) -> None:
        self._store = store
        self._ground = ground
        own = {} if file is None else file.secrets
        self._own: Mapping[str, KeyRecord] = {
            key_id: KeyRecord(key_id, "", "admin", name="key file", digest=digest_of(secret))
            for key_id, secret in own.items()
        }
        self._warnings = () if file is None else file.warnings
        self._said: bool | None = None
        self.version = 0
        """Another number after every change."""
        store.watch(self._heard)

    # ── What an authenticator asks ───────────────────────────────────────────

    @property
    def closed(self) -> bool:
        """Whether an admin key exists, so that a key is needed."""
        return bool(self._own) or self._store.closed

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's keys by now."""
        return self._ground.held()

    def get(self, key_id: str) -> KeyRecord | None:
        """Return a key, good or not; one of the file goes before one of the cluster."""
        return self._own.get(key_id) or self._store.get(key_id)

    def now_ms(self) -> int:
        """Return the wall clock."""
        return self._ground.wall_ms()

    def __len__(self) -> int:
        return len(self._own) + len(self._store)

    # ── What an administrator wants ──────────────────────────────────────────

    def keys(self, *, revoked: bool) -> Sequence[KeyView]:
        """Return all keys, with `revoked` those too, sorted by tenant and id."""
        views = [self._view(record) for record in self._own.values()]
        views += [
            self._view(record)
            for record in self._store.records()
            if record.id not in self._own and (revoked or not record.revoked_ms)
        ]
        return sorted(views, key=lambda view: (view.tenant, view.id))

    def key(self, key_id: str) -> KeyView | None:
        """Return a key, good or not; None if there is none."""
        record = self.get(key_id)
        return None if record is None else self._view(record)

    def create(self, wish: KeyRequest) -> NewKey:
        """Make a key that is good on all nodes; see `KeyService`."""
        only = wish.restrictions
        if wish.role == "admin" and only is not None and not self._store.closed:
            raise SmgError(ErrorKind.CONFLICT, _RESTRICTED, code="first_admin_key_restricted")
        now_ms = self.now_ms()
        key_id = self._ground.chance(ID_CHARACTERS, ID_ALPHABET)
        secret = self._ground.chance(SECRET_CHARACTERS, SECRET_ALPHABET)
        expires_ms = 0 if wish.expires_in_s is None else now_ms + wish.expires_in_s * 1000
        record = KeyRecord(
            key_id,
            wish.tenant,
            wish.role,
            name=wish.name,
            digest=digest_of(secret),
            created_ms=now_ms,
            expires_ms=expires_ms,
            models=() if only is None else only.models,
            networks=() if only is None else only.networks,
            routes=() if only is None else only.routes,
            max_priority="" if only is None else only.max_priority or "",
        )
        closed = self.closed
        try:
            self._store.add(record, wall_ms=now_ms)
        except StateError as error:
            raise SmgError(ErrorKind.CONFLICT, str(error), code=f"state_{error.reason}") from error
        return NewKey(
            self._view(record),
            key_text(key_id, secret),
            closes=not closed and self.closed,
            form=KEYS_FORM if record.restricted or record.role not in _FIRST_ROLES else 1,
        )

    def revoke(self, key_id: str, *, force: bool) -> RevokedKey:
        """Make a key worthless on all nodes; see `KeyService`."""
        if key_id in self._own:
            raise SmgError(ErrorKind.CONFLICT, _FILE, where="id", code="key_of_file")
        record = self._store.get(key_id)
        if record is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"no key has the id {key_id[:64]!r}",
                where="id",
                code="key_not_found",
            )
        last = not record.revoked_ms and self._is_last(record)
        if last and not force:
            raise SmgError(ErrorKind.CONFLICT, _LAST, where="id", code="last_admin_key")
        before = self._view(record)
        now = self._view(self._store.revoke(key_id, wall_ms=self.now_ms()))
        if last:
            self._store.open_again()
        return RevokedKey(before, now, opens=last)

    def _is_last(self, record: KeyRecord) -> bool:
        """Whether the cluster could not be administered by a key any more without this one."""
        if record.role != "admin" or self._own:
            return False
        now_ms = self.now_ms()
        return not any(
            other.role == "admin" and other.id != record.id and other.active(now_ms)
            for other in self._store.records()
        )

    def _view(self, record: KeyRecord) -> KeyView:
        now_ms = self.now_ms()
        return KeyView(
            id=record.id,
            tenant=record.tenant,
            role=record.role,
            name=record.name,
            fingerprint=fingerprint_of(record.digest),
            state="revoked"
            if record.revoked_ms
            else "active"
            if record.active(now_ms)
            else "expired",
            source="file" if record.id in self._own else "cluster",
            created_ms=record.created_ms or None,
            expires_ms=record.expires_ms or None,
            revoked_ms=record.revoked_ms or None,
            models=record.models,
            networks=record.networks,
            routes=record.routes,
            max_priority=record.max_priority,
        )

    # ── What the log says ────────────────────────────────────────────────────

    def say(self) -> None:
        """Log whether keys are needed, at the start and when it changes."""
        if self._said is None:
            for warning in self._warnings:
                _log.warning("%s", warning)
        if self._said is self.closed:
            return
        self._said = self.closed
        fields = {"fields": {"event": "closed" if self.closed else "open"}}
        if self.closed:
            _log.info("an admin key exists: requests need a key", extra=fields)
        else:
            _log.warning(
                "no admin key exists: data is open to everyone and the admin API answers loopback only, unless"
                " auth.data or auth.certificates say otherwise (smg-admin keys create --role admin)",
                extra=fields,
            )

    def _heard(self, key_ids: Sequence[str]) -> None:
        self.version += 1
        if self._said is not None:
            self.say()
