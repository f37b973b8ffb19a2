"""Service factory: builds the services between replicated state and the HTTP surface."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from smg_mesh.shared import LimitsView, Shared
from smg_node.cluster.admin_key_file import FileKeys, read_admin_keys
from smg_node.cluster.api_keys import ClusterKeys, KeyContext, KeyStore
from smg_node.cluster.limits.limit_service import ClusterLimits, Rights
from smg_node.cluster.membership.member_query import MemberQueries
from smg_node.cluster.reports.audit_log import AuditLog, AuditStore
from smg_node.cluster.reports.state_report import Holdings, StateReport
from smg_node.cluster.settings.live_settings import LiveSettings, RunningStore, SettingsStore
from smg_node.cluster.settings.settings_service import ClusterSettings
from smg_node.config.frozen_settings import Settings
from smg_node.config.schema.problems import ConfigurationError
from smg_node.fleet.models.model_settings import parser_checks
from smg_node.http.ports.limits import LimitService
from smg_node.http.ports.shared_state import AuditService, SettingsService, StateService
from smg_node.pipeline.placement.policy_settings import POLICY_FIELDS, all_policies
from smg_node.system_clock import secret_text


class FollowedState(Protocol):
    """The shared state that every process follows."""

    @property
    def settings(self) -> SettingsStore:
        """The settings of the cluster."""
        ...

    @property
    def keys(self) -> KeyStore:
        """The API keys of the cluster."""
        ...

    @property
    def running(self) -> RunningStore:
        """The settings each node reports to run."""
        ...

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...


class SharedState(Holdings, FollowedState, Protocol):
    """Port to the shared state these services need; `smg_mesh.shared.Shared` has all of it."""

    @property
    def name(self) -> str:
        """This node's name."""
        ...

    @property
    def limits(self) -> LimitsView:
        """The limits of the cluster."""
        ...

    @property
    def rights(self) -> Rights:
        """What this node may spend of them."""
        ...

    @property
    def audit(self) -> AuditStore:
        """The replicated audit log."""
        ...


@dataclass(frozen=True, slots=True)
class SharedServices:
    """The services. `live` is to be run; the others answer the HTTP surface."""

    live: LiveSettings
    settings: SettingsService
    keys: ClusterKeys
    limits: LimitService
    audit: AuditService
    state: StateService

    def loops(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return what runs as long as the process does, by name."""
        return {"settings": self.live.run, **self.keys.loops()}


def build_services(
    settings: Settings,
    shared: SharedState,
    mesh: MemberQueries | None,
    *,
    wall_ms: Callable[[], int],
) -> SharedServices:
    """Return the services; nothing is opened or written. `mesh` is None for a standalone node."""
    live = build_live(settings, shared)
    return SharedServices(
        live=live,
        settings=ClusterSettings(shared.name, live, shared.settings, shared.running, mesh),
        keys=build_keys(settings, shared, wall_ms),
        # Every node has a data directory, and what is minted is written down there.
        limits=ClusterLimits(shared.name, shared.limits, shared.rights, shared, mesh, durable=True),
        audit=AuditLog(shared.audit),
        state=StateReport(shared.name, shared, mesh),
    )


def build_live(settings: Settings, shared: FollowedState) -> LiveSettings:
    """Return the live settings of a process: those it takes from the cluster."""
    policies = tuple(all_policies(settings.policy_plugins))
    choices = {
        f"{place}{knob}": policies
        for place in ("routing.", "models/NAME/")
        for knob in POLICY_FIELDS
    }
    return LiveSettings(
        settings, shared.settings, shared.running, choices=choices, checks=parser_checks()
    )


def build_keys(
    settings: Settings, shared: FollowedState, wall_ms: Callable[[], int]
) -> ClusterKeys:
    """Return the API keys of a process.

    A key file that cannot be used holds no keys until it can: it was good when the node was started (`check_keys`), and
    a process that takes the place of another one is not to fail for it.
    """
    path, given = settings.auth.admin_key_file, None
    ground = KeyContext(wall_ms, secret_text, held=lambda: shared.held)
    if settings.auth.gives_keys:
        from smg_node.cluster.given_keys import read_given_keys

        given = read_given_keys(settings.auth)
    file = None
    if path is not None:
        try:
            file = read_admin_keys(path)
        except ConfigurationError as error:
            file = FileKeys({}, (error.problems[0].message,), path)
    return ClusterKeys(shared.keys, ground, file, given)


def check_keys(settings: Settings) -> None:
    """Return if the keys in file and settings of a node can be used; ConfigurationError if not."""
    if settings.auth.gives_keys:
        from smg_node.cluster.given_keys import read_given_keys

        read_given_keys(settings.auth)
    if settings.auth.admin_key_file is not None:
        read_admin_keys(settings.auth.admin_key_file)


def listen(settings: Settings, shared: Shared, desks: SharedServices) -> None:
    """Report changes of keys to the log, and audit rights as far as settings want it."""
    shared.watch_held(desks.keys.say)
    shared.rights.audit(on=settings.admission.audit)
    desks.live.watch(("admission",), lambda now: shared.rights.audit(on=now.admission.audit))
