"""The state that nodes share, without any node: real settings on namespaces in memory, the rest as scripts.

`SharedWorld` is a cluster of such nodes: what is set on one counts on the others at once, unless they are cut.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Row
from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_mesh.state.api_keys import Keys
from smg_mesh.state.limits.limits_view import LimitsView
from smg_mesh.state.providers import ProvidersView
from smg_mesh.state.settings import SettingsView
from smg_node.cluster.membership.mesh_port import Answer
from smg_node.cluster.service_factory import SharedServices, build_services
from smg_node.config.frozen_settings import Settings, plain_settings
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.shared_state import SessionView
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces
from support.tools.configuration import load


@dataclass(frozen=True)
class FakeRow:
    """One row of the audit log."""

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


class FakeAuditStore:
    """Rows in memory, as every node sees them; refuses what a test says."""

    def __init__(self, me: str, rows: list[FakeRow]) -> None:
        self._me = me
        self._rows = rows
        self.refuses: Exception | None = None

    def append(
        self,
        *,
        who: str,
        address: str,
        action: str,
        subject: str,
        before: Any,
        after: Any,
        request_id: str,
    ) -> FakeRow:
        if self.refuses is not None:
            raise self.refuses
        number = len(self._rows) + 1
        row = FakeRow(
            id=f"{number:06}-{self._me}",
            time_ms=1_700_000_000_000 + number,
            node=self._me,
            who=who,
            address=address,
            action=action,
            subject=subject,
            before=before,
            after=after,
            request_id=request_id,
        )
        self._rows.append(row)
        return row

    def rows(
        self, *, before: str, after: str, action: str, subject: str, who: str, node: str, limit: int
    ) -> Sequence[FakeRow]:
        found = [
            row
            for row in reversed(self._rows)
            if (not before or row.id < before)
            and (not after or row.id > after)
            and (not action or f"{row.action}.".startswith(f"{action}."))
            and subject in ("", row.subject)
            and who in ("", row.who)
            and node in ("", row.node)
        ]
        return found[:limit]

    def row(self, row_id: str, /) -> FakeRow | None:
        return next((row for row in self._rows if row.id == row_id), None)

    def change(self, row_id: str, **fields: Any) -> None:
        """Let a row be another one, for tests of what an older node wrote."""
        at = next(at for at, row in enumerate(self._rows) if row.id == row_id)
        self._rows[at] = replace(self._rows[at], **fields)


class FakeRunning:
    """What each node says that it runs."""

    def __init__(self, me: str, said: dict[str, dict[str, str]]) -> None:
        self._me = me
        self._said = said

    def publish(self, **facts: str) -> None:
        self._said.setdefault(self._me, {}).update(facts)

    def all(self) -> Mapping[str, Mapping[str, str]]:
        return {name: dict(facts) for name, facts in sorted(self._said.items())}


@dataclass
class FakeNamespaceState:
    """What there is of one kind of state."""

    digest: str
    entries: int = 1
    size_bytes: int = 64
    documents: int = 1
    epoch: int = 0


class FakeMesh:
    """Carries questions between the nodes of a world; `silent` ones do not answer."""

    def __init__(self, me: str, answers: dict[str, dict[str, Answer]]) -> None:
        self._me = me
        self._answers = answers
        self.silent: set[str] = set()

    async def ask(self, name: str, topic: str, payload: bytes, *, deadline_s: float = 5.0) -> bytes:
        from smg_mesh.mesh import AskError

        if name not in self._answers:
            raise LookupError(name)
        if name in self.silent:
            raise AskError("timeout", "no answer in time")
        return await self._answers[name][topic](payload, self._me)

    def answer(self, topic: str, reply: Answer) -> None:
        self._answers.setdefault(self._me, {})[topic] = reply


class FakeBook:
    """What one node says of the use of limits, as a test wants it."""

    def __init__(self) -> None:
        self.reports: dict[str, Report] = {}
        self.book: list[Row] = []

    def report(self, key: str) -> Report | None:
        return self.reports.get(key)

    def rows(self) -> Sequence[Row]:
        return self.book


class FakeRates:
    """What others know of vendors' limits, as a test says; keeps what is published."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.told: list[Mapping[str, Any]] = []
        self._watchers: list[Callable[[Sequence[str]], None]] = []

    def publish(self, rows: Mapping[str, Any]) -> None:
        self.told.append(dict(rows))

    def others(self) -> Mapping[str, Any]:
        return self.said

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        self._watchers.append(heard)

    def say(self, rows: Mapping[str, Any]) -> None:
        """Let others say these, and nothing else."""
        names = sorted({*self.said, *rows})
        self.said = dict(rows)
        for heard in self._watchers:
            heard(names)


class FakeShared:
    """One node's copy."""

    def __init__(self, name: str, settings: SettingsView, world: "SharedWorld") -> None:
        self.name = name
        self.settings = settings
        self.keys = Keys(world.keys[name])
        self.limits = LimitsView(world.limits[name], wall_ms=lambda: world.limits[name].wall_ms)
        self.rights = FakeBook()
        self.audit = FakeAuditStore(name, world.rows)
        self.running = FakeRunning(name, world.running)
        self.providers = ProvidersView(world.providers[name], name)
        self.rates = FakeRates()
        self.carried = CarriedSecrets(lambda: ())
        self.keyring = "k1"
        self.held = True
        self.states = {
            "settings": FakeNamespaceState("00ff"),
            "workers": FakeNamespaceState("11ee"),
        }
        self._world = world

    def state(self) -> Mapping[str, FakeNamespaceState]:
        return self.states

    def seal(self, secret: str) -> bytes:
        return f"{self.keyring}|{secret[::-1]}".encode()

    def open_secret(self, sealed: bytes) -> str | None:
        key, _, secret = sealed.decode().partition("|")
        return secret[::-1] if key == self.keyring else None

    def digest(self) -> str:
        return "0123456789abcdef"

    def living(self) -> Sequence[str]:
        return self._world.settings.owners


class SharedWorld:
    """Nodes by name, all of them reachable."""

    def __init__(self, *names: str) -> None:
        self.settings = FakeNamespaces(*names, name="settings")
        self.keys = FakeNamespaces(*names, name="keys")
        self.limits = FakeNamespaces(*names, name="limits")
        self.providers = FakeNamespaces(*names, name="providers")
        self.wall_ms = EPOCH_MS
        self.rows: list[FakeRow] = []
        self.running: dict[str, dict[str, str]] = {}
        self.answers: dict[str, dict[str, Answer]] = {}
        self.nodes = {
            name: FakeShared(name, SettingsView(self.settings[name], name), self) for name in names
        }
        self.meshes = {name: FakeMesh(name, self.answers) for name in names}

    def desks(self, name: str, *flags: str) -> SharedServices:
        """Return the desks of a node that was started with these flags."""
        own = plain_settings(load(["--name", name, *flags]).settings)
        return self.desks_of(name, own)

    def desks_of(self, name: str, own: Settings) -> SharedServices:
        """Return the desks of a node with these settings."""
        mesh = self.meshes[name]
        return build_services(own, self.nodes[name], mesh, wall_ms=lambda: self.wall_ms)


class FakeSessions:
    """One sticky placement."""

    def __init__(self) -> None:
        self.placed = {
            ("key-1", "m"): SessionView("4be1d2f39a07c655", "w-1", "least_load", "b", 10, 90)
        }

    def session(self, key: str, *, model: str, tenant: str) -> SessionView:
        found = self.placed.get((key, model))
        if found is None:
            raise SmgError(ErrorKind.NOT_FOUND, "no such session", code="session_not_found")
        return found

    def end_session(self, key: str, *, model: str, tenant: str) -> SessionView:
        found = self.session(key, model=model, tenant=tenant)
        del self.placed[key, model]
        return found
