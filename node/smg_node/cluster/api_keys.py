"""API keys of this node: those replicated in the cluster, and those of its own admin key file."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

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
from smg_node.http.ports.keys import (
    KEYS_FORM,
    ForeignKey,
    KeyImport,
    KeyRequest,
    KeyView,
    NewKey,
    RevokedKey,
)

if TYPE_CHECKING:
    from smg_node.cluster.given_keys import GivenKeys

Chance = Callable[[int, str], str]
"""Returns so many characters of an alphabet, that nobody can guess."""
_LAST: Final = (
    "this is the last admin key that is good: without it data is open to everyone again, and the admin API"
    " answers loopback only, where no issuer of tokens and no rule for certificates closes them; force it (?force=true,"
    " --force) if that is meant"
)
_RESTRICTED: Final = (
    "the first admin key closes the cluster, so it cannot be a restricted one, which may let nobody in;"
    " make one without restrictions first"
)
_FIRST_ROLES: Final = ("user", "operator", "admin")
"""Those that every version reads."""
_FILE: Final = (
    "the key comes from this node's own settings (auth.admin_key_file, auth.tenant_api_keys and the like); take it"
    " out of there"
)

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

    @property
    def foreign(self) -> bool:
        """Whether there is a key of another gateway."""
        ...

    def add(self, record: KeyRecord, *, wall_ms: int) -> KeyRecord:
        """Write a new key."""
        ...

    def make_room(self, count: int, *, wall_ms: int) -> None:
        """Return if so many more keys fit; StateError."""
        ...

    def put(self, record: KeyRecord) -> KeyRecord:
        """Write a new key, for which there is room."""
        ...

    def revoke(self, key_id: str, *, wall_ms: int) -> KeyRecord:
        """Make a key worthless everywhere; LookupError."""
        ...

    def forget(self, key_id: str) -> None:
        """Take away the record of a revoked key before its time."""
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

    def __init__(
        self,
        store: KeyStore,
        ground: KeyContext,
        file: FileKeys | None = None,
        given: "GivenKeys | None" = None,
    ) -> None:
        """Take the keys of the file of this node, and those in its settings; None for none."""
        self._store = store
        self._ground = ground
        self._file = file
        self._given = {} if given is None else given.records
        self._own: Mapping[str, KeyRecord] = {**self._given, **_records(file)}
        self._warnings = (*(given.warnings if given else ()), *(file.warnings if file else ()))
        self._said: bool | None = None
        self.version = 0
        """Another number after every change."""
        store.watch(self._heard)

    # ── What an authenticator asks ───────────────────────────────────────────

    @property
    def closed(self) -> bool:
        """Whether an admin key exists, so that a key is needed; a file of keys that holds none just now counts too."""
        return self._file is not None or bool(self._given) or self._store.closed

    @property
    def closed_everywhere(self) -> bool:
        """Whether the cluster has an admin key, so that a key is needed on all nodes."""
        return self._store.closed

    @property
    def settled(self) -> bool:
        """Whether this node holds the cluster's keys by now."""
        return self._ground.held()

    @property
    def foreign(self) -> bool:
        """Whether there is a key of another gateway."""
        return bool(self._given) or self._store.foreign

    def get(self, key_id: str) -> KeyRecord | None:
        """Return a key, good or not; one of the file goes before one of the cluster."""
        return self._own.get(key_id) or self._store.get(key_id)

    def now_ms(self) -> int:
        """Return the wall clock."""
        return self._ground.wall_ms()

    def __len__(self) -> int:
        return len(self._own) + len(self._store)

    def loops(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return what runs as long as the node does, by name: what follows the file, if there is one."""
        if self._file is None or self._file.path is None:
            return {}
        from smg_node.cluster.admin_key_watch import AdminKeyWatch

        return {"admin keys": AdminKeyWatch(self._file.path, self.take_file).run}

    def take_file(self, file: FileKeys) -> bool:
        """Take other keys of the file, and return whether there are other ones."""
        now = {**self._given, **_records(file)}
        if now == self._own:
            return False
        self._file, self._own = file, now
        self.version += 1
        return True

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
        if wish.until_ms:
            # Most keys are made by one that never ends.
            from smg_node.access.key_rights import check_end

            check_end(expires_ms or None, wish.until_ms, "expires_in_s")
            expires_ms = expires_ms or wish.until_ms
        if wish.tenant_keys_max is not None:
            self._check_room(wish.tenant, wish.tenant_keys_max)
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
            raise _unkept(error) from error
        return NewKey(
            self._view(record),
            key_text(key_id, secret),
            closes=not closed and self.closed,
            form=KEYS_FORM if record.restricted or record.role not in _FIRST_ROLES else 1,
        )

    def _check_room(self, tenant: str, most: int) -> None:
        """Return if a tenant has fewer keys than that, after the oldest of more revoked ones are forgotten; CONFLICT
        `tenant_keys_full`.
        """
        records = [record for record in self._store.records() if record.tenant == tenant]
        kept = sum(not record.revoked_ms for record in records)
        if kept >= most:
            raise SmgError(
                ErrorKind.CONFLICT,
                f"tenant {tenant} has {kept} keys, and its administrators may have {most} (auth.tenant_keys_max): revoke"
                " those that are not needed; expired ones count too",
                where="tenant",
                code="tenant_keys_full",
            )
        gone = [
            one for one in records if one.revoked_ms and one.role != "admin" and not one.foreign
        ]
        gone.sort(key=lambda one: one.revoked_ms)
        for record in gone[: max(0, len(gone) - most)]:
            self._store.forget(record.id)

    def take_over(self, wishes: Sequence[ForeignKey], *, dry_run: bool) -> KeyImport:
        """Make keys of another gateway good on all nodes; see `KeyService`."""
        # Imported with the first import of keys: most nodes never see one.
        from smg_node.cluster.foreign_keys import plan_take_over

        now_ms, closed = self.now_ms(), self.closed
        plan = plan_take_over(wishes, self.get, now_ms=now_ms)
        try:
            self._store.make_room(len(plan.new), wall_ms=now_ms)
            for record in () if dry_run else plan.new:
                self._store.put(record)
        except StateError as error:
            raise _unkept(error) from error
        closes = not closed and any(record.role == "admin" for record in plan.new)
        return KeyImport([*map(self._view, plan.new)], plan.unchanged, plan.refused, closes)

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
        return RevokedKey(before, now, opens=last and not self.closed)

    def _is_last(self, record: KeyRecord) -> bool:
        """Whether the cluster could not be administered by a key any more without this one."""
        if record.role != "admin" or any(own.role == "admin" for own in self._own.values()):
            return False
        now_ms = self.now_ms()
        return not any(
            other.role == "admin"
            and other.id != record.id
            and other.active(now_ms)
            # One for other routes only administers nothing.
            and (not other.routes or "admin" in other.routes)
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
            foreign=record.foreign,
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
                " auth.data, auth.certificates or issuers of tokens say otherwise (smg-admin keys create --role admin)",
                extra=fields,
            )

    def _heard(self, key_ids: Sequence[str]) -> None:
        self.version += 1
        if self._said is not None:
            self.say()


def _records(file: FileKeys | None) -> Mapping[str, KeyRecord]:
    secrets = {} if file is None else file.secrets
    return {
        key_id: KeyRecord(key_id, "", "admin", name="key file", digest=digest_of(secret))
        for key_id, secret in secrets.items()
    }


def _unkept(error: StateError) -> SmgError:
    return SmgError(ErrorKind.CONFLICT, str(error), code=f"state_{error.reason}")
