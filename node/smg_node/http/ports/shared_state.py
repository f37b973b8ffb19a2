"""Shared state port: cluster settings, audit log, sessions and state digests.

Versions are 64 bits, more than a double holds, so they are text wherever a client sees them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from smg_node.core.errors import ErrorKind, SmgError


class Caller(msgspec.Struct, frozen=True):
    """Caller of a request: `who` as far as it is known, from which address, under which request id."""

    who: str
    address: str
    request_id: str


# ── Settings ─────────────────────────────────────────────────────────────────


class SettingRival(msgspec.Struct, frozen=True):
    """A concurrent write that lost against the value in force."""

    value: Any
    version: str
    owner: str
    time_ms: int


class SettingView(msgspec.Struct, frozen=True):
    """One setting that may be changed while the cluster runs.

    `value` is the cluster's where `is_set`, `own` this node's; `effective` is what it runs,
    `source` where that comes from: cluster, node (its file, environment or flags) or default.
    `ignored` is why this node does not follow the cluster, empty where it does. `about` describes
    the setting: kind, range, default, help.
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
    """Reason why a value is refused. `where` is its JSON path."""

    key: str
    message: str
    where: str


class SettingChange(msgspec.Struct, frozen=True):
    """Result of a write: the cluster's value before (None: it was not set) and the setting now."""

    before: Any
    now: SettingView


class StaleSettingError(SmgError):
    """The current version is another one than the named; `current` is the current setting."""

    def __init__(self, current: SettingView) -> None:
        self.current: Final = current
        self.version: Final = current.version
        now = f"version {current.version}" if current.is_set else "not set"
        super().__init__(
            ErrorKind.CONFLICT, f"{current.key} is {now} by now", where="if-match", code="stale"
        )


class StaleValueError(SmgError):
    """The same of a provider or route; `current` is its view, None where there is none."""

    def __init__(self, subject: str, version: str, current: Any) -> None:
        self.current: Final = current
        self.version: Final = version
        now = "not defined" if version == "0" else f"version {version}"
        super().__init__(
            ErrorKind.CONFLICT, f"{subject} is {now} by now", where="if-match", code="stale"
        )


class SettingDifference(msgspec.Struct, frozen=True):
    """One setting for which two sides differ: their values, and the source of each."""

    key: str
    left: Any
    left_source: str
    right: Any
    right_source: str


class ConfigState(msgspec.Struct, frozen=True):
    """Digests of a node's configuration, as it reports them.

    `hash` is over the cluster's settings as it follows them: equal on all nodes soon after a
    change. `effective` is over all live settings with its own values in them: differs where nodes
    are started differently. Empty before the first report.
    """

    hash: str
    effective: str


class SettingsService(Protocol):
    """The settings of the whole cluster."""

    def settings(self, *, unset: bool) -> Sequence[SettingView]:
        """Return those that are set, with `unset` all that could be, sorted by key."""
        ...

    def setting(self, key: str) -> SettingView:
        """Return one, set or not; NOT_FOUND `setting_not_found` for an unknown key."""
        ...

    def change(self, key: str, value: Any, *, version: int | None) -> SettingChange:
        """Set it everywhere.

        INVALID_REQUEST says what is wrong with key or value; StaleSettingError where another
        version is there. None overwrites any version; 0 expects nothing.
        """
        ...

    def unset(self, key: str, *, version: int | None) -> SettingChange:
        """Return to each node's own value; NOT_FOUND if it is not set."""
        ...

    def restore(self, values: Mapping[str, Any]) -> Sequence[SettingChange]:
        """Set all of these, None unsets; nothing is written if one of them is refused."""
        ...

    def check(self, values: Mapping[str, Any]) -> Sequence[SettingProblem]:
        """Return the problems of these values, without effect."""
        ...

    async def difference(self, node: str) -> Sequence[SettingDifference]:
        """Compare this node's own values (left) with the cluster's (right), or with those of
        `node`.
        """
        ...

    def states(self) -> Mapping[str, ConfigState]:
        """Return the configuration digests of each living node, this one included, sorted by name."""
        ...


# ── Audit ────────────────────────────────────────────────────────────────────


class AuditView(msgspec.Struct, frozen=True):
    """One recorded change. Ids sort by time; `address` is where the request came from."""

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
    """Filter of rows: those that match every non-empty field. `before` and `after` are ids, neither
    is included.

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
    """Audit log of changes on any node."""

    def record(
        self, caller: Caller, action: str, subject: str, *, before: Any = None, after: Any = None
    ) -> None:
        """Record a change on every node. Never fails a change: a row that cannot be kept is logged."""
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
    """All replicated state of this node, and its digest.

    `held`: it has taken in what the cluster had when it joined. `members` are the others that were
    asked, by name: the namespaces that differ there, or why that is unknown.
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
    """Worker of one routing key. `id` is the hash under which the cluster knows the key.

    `node` is the last writer and `age_ms` the age of that; `why` how the worker was chosen.
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
