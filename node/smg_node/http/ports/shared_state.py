"""What the HTTP surface asks of the state that all nodes share: settings, the audit log, sessions, digests.

Versions are 64 bits, more than a double holds, so they are text wherever a client sees them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from smg_node.core.errors import ErrorKind, SmgError


class Caller(msgspec.Struct, frozen=True):
    """Whose request it is: `who` as far as it is known, from which address, under which request id."""

    who: str
    address: str
    request_id: str


# ── Settings ─────────────────────────────────────────────────────────────────


class SettingRival(msgspec.Struct, frozen=True):
    """A value written without knowledge of the one that counts."""

    value: Any
    version: str
    owner: str
    time_ms: int


class SettingView(msgspec.Struct, frozen=True):
    """One setting that may be changed while the cluster runs.

    `value` is the cluster's word where `is_set`, `own` this node's; `effective` is what it runs, `source`
    whose word that is: cluster, node (its file, environment or flags) or default. `ignored` is why this node
    does not follow the cluster, empty where it does. `about` says what may be set: kind, range, default, help.
    """

    key: str
    is_set: bool
    value: Any
    version: str
    owner: str
    time_ms: int
    own: Any
    effective: Any
    source: str
    ignored: str
    conflicts: Sequence[SettingRival]
    about: Mapping[str, Any]


class SettingProblem(msgspec.Struct, frozen=True):
    """Why a value is refused. `where` is its JSON path."""

    key: str
    message: str
    where: str


class SettingChange(msgspec.Struct, frozen=True):
    """What a write did: the cluster's value before (None: it was not set) and the setting now."""

    before: Any
    now: SettingView


class StaleSettingError(SmgError):
    """Another version is there than the one that was named; `current` is what is there."""

    def __init__(self, current: SettingView) -> None:
        self.current: Final = current
        self.version: Final = current.version
        now = f"version {current.version}" if current.is_set else "not set"
        super().__init__(
            ErrorKind.CONFLICT, f"{current.key} is {now} by now", where="if-match", code="stale"
        )


class SettingDifference(msgspec.Struct, frozen=True):
    """One setting for which two sides differ: their values, and whose word each is."""

    key: str
    left: Any
    left_source: str
    right: Any
    right_source: str


class ConfigState(msgspec.Struct, frozen=True):
    """What a node says that it runs.

    `hash` is over the cluster's settings as it follows them: equal on all nodes soon after a change.
    `effective` is over all live settings with its own words in them: differs where nodes are started
    differently. Empty while nothing has been heard.
    """

    hash: str
    effective: str


class SettingsService(Protocol):
    """The settings of the whole cluster."""

    def settings(self, *, unset: bool) -> Sequence[SettingView]:
        """Return those that are set, with `unset` all that could be, sorted by key."""
        ...

    def setting(self, key: str) -> SettingView:
        """Return one, set or not; NOT_FOUND `setting_not_found` for a key that cannot be."""
        ...

    def change(self, key: str, value: Any, *, version: int | None) -> SettingChange:
        """Set it everywhere.

        INVALID_REQUEST says what is wrong with key or value; StaleSettingError where another version is there.
        None writes over whatever is there; 0 expects nothing.
        """
        ...

    def unset(self, key: str, *, version: int | None) -> SettingChange:
        """Go back to each node's own word; NOT_FOUND if it is not set."""
        ...

    def restore(self, values: Mapping[str, Any]) -> Sequence[SettingChange]:
        """Set all of these, None unsets; nothing is written if one of them cannot be."""
        ...

    def check(self, values: Mapping[str, Any]) -> Sequence[SettingProblem]:
        """Return what is wrong with these, without effect."""
        ...

    async def difference(self, node: str) -> Sequence[SettingDifference]:
        """Compare what this node was told (left) with the cluster (right), or with what `node` runs."""
        ...

    def states(self) -> Mapping[str, ConfigState]:
        """Return what each living node says that it runs, this one included, sorted by name."""
        ...


# ── Audit ────────────────────────────────────────────────────────────────────


class AuditView(msgspec.Struct, frozen=True):
    """One change that somebody made. Ids sort by time; `address` is where the request came from."""

    id: str
    time_ms: int
    node: str
    who: str
    address: str
    action: str
    subject: str
    before: Any
    after: Any
    request_id: str


class AuditQuery(msgspec.Struct, frozen=True):
    """Which rows: all that match what is not empty. `before` and `after` are ids, neither is included.

    `action` matches whole or up to a dot: `worker` is `worker.add` as well.
    """

    before: str = ""
    after: str = ""
    action: str = ""
    subject: str = ""
    who: str = ""
    node: str = ""
    limit: int = 100


class AuditService(Protocol):
    """What was changed, by whom, on any node."""

    def record(
        self, caller: Caller, action: str, subject: str, *, before: Any = None, after: Any = None
    ) -> None:
        """Write it down on every node. Never fails a change: what cannot be kept is logged."""
        ...

    def rows(self, query: AuditQuery) -> Sequence[AuditView]:
        """Return the rows, newest first."""
        ...

    def row(self, row_id: str) -> AuditView:
        """Return one; NOT_FOUND `change_not_found` otherwise."""
        ...


# ── State ────────────────────────────────────────────────────────────────────


class NamespaceView(msgspec.Struct, frozen=True):
    """One kind of replicated state: equal digests, equal contents. `epoch` is the latest of its documents."""

    name: str
    digest: str
    entries: int
    bytes: int
    documents: int
    epoch: int


class StateView(msgspec.Struct, frozen=True):
    """All replicated state of this node, and the digest of all of it.

    `held`: it has taken in what the cluster had when it joined.
    `members` are the others that were asked, by name: the namespaces that differ there, or why nobody knows.
    """

    node: str
    held: bool
    digest: str
    namespaces: Sequence[NamespaceView]
    members: Mapping[str, "PeerState"] = {}


class PeerState(msgspec.Struct, frozen=True):
    """How a member's state compares with this node's; `error` says why that is not known."""

    same: bool
    differs: tuple[str, ...] = ()
    error: str = ""


class StateService(Protocol):
    """The replicated state as such."""

    async def state(self, *, peers: bool) -> StateView:
        """Return it; with `peers` compare with every living member, within 2 s."""
        ...


# ── Sessions ─────────────────────────────────────────────────────────────────


class SessionView(msgspec.Struct, frozen=True):
    """Where the requests of one routing key go. `id` is the hash under which the cluster knows it.

    `node` is who said so last and `age_ms` how long ago; `why` how the worker was chosen.
    """

    id: str
    worker: str
    why: str
    node: str
    age_ms: int
    expires_ms: int


class SessionService(Protocol):
    """Sticky placements."""

    def session(self, key: str, *, model: str, tenant: str) -> SessionView:
        """Return the placement of a routing key (with its model), or of the `id` of one.

        NOT_FOUND `session_not_found` where there is none.
        """
        ...

    def end_session(self, key: str, *, model: str, tenant: str) -> SessionView:
        """Forget it on every node, and return what it was."""
        ...
