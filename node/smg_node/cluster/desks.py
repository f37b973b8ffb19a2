"""Builds what stands between the state that all nodes share and the HTTP surface."""

from dataclasses import dataclass
from typing import Protocol

from smg_node.cluster.asking import Asking
from smg_node.cluster.audit import AuditLog, AuditStore
from smg_node.cluster.settings import LiveSettings, RunningStore, SettingsStore
from smg_node.cluster.settings_desk import ClusterSettings
from smg_node.cluster.state_report import Holdings, StateReport
from smg_node.config.plain import Settings
from smg_node.http.shared_ports import AuditDesk, SettingsDesk, StateDesk
from smg_node.pipeline.choosing import all_policies


class SharedState(Holdings, Protocol):
    """What these desks need of the shared state; `smg_mesh.shared.Shared` has all of it."""

    @property
    def name(self) -> str:
        """This node's name."""
        ...

    @property
    def settings(self) -> SettingsStore:
        """The settings of the cluster."""
        ...

    @property
    def running(self) -> RunningStore:
        """What each node says that it runs."""
        ...

    @property
    def audit(self) -> AuditStore:
        """What was changed."""
        ...


@dataclass(frozen=True, slots=True)
class SharedDesks:
    """`live` is to be run; the others answer the HTTP surface."""

    live: LiveSettings
    settings: SettingsDesk
    audit: AuditDesk
    state: StateDesk


def build_desks(settings: Settings, shared: SharedState, mesh: Asking | None) -> SharedDesks:
    """Return them; nothing is opened or written. `mesh` is None for a node alone."""
    policies = tuple(all_policies(settings.policy_plugins))
    choices = {
        f"{place}{knob}": policies
        for place in ("routing.", "models/NAME/")
        for knob in ("policy", "prefill_policy", "decode_policy")
    }
    live = LiveSettings(settings, shared.settings, shared.running, choices=choices)
    return SharedDesks(
        live=live,
        settings=ClusterSettings(shared.name, live, shared.settings, shared.running, mesh),
        audit=AuditLog(shared.audit),
        state=StateReport(shared.name, shared, mesh),
    )
