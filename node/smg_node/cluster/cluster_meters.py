"""Cluster meters: counters of the mesh and of shared state, exposed to scrapes as declared metrics.

Both count under short names of their own; `PLACES` and `STATE_PLACES` say where each of them goes. A name
that is not there goes to `smg_node_mesh_other_total` or `smg_node_state_other_total`, so that nothing is lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from smg_node.telemetry.metrics.declared import mesh as mesh_metrics
from smg_node.telemetry.metrics.declared import prefix_hints as hint_metrics
from smg_node.telemetry.metrics.declared import rights as rights_metrics
from smg_node.telemetry.metrics.declared import shared_state as state_metrics
from smg_node.telemetry.metrics.meters import Meters, Reading
from smg_node.telemetry.metrics.metric import Metric

if TYPE_CHECKING:
    from smg_mesh.shared import NamespaceState
    from smg_node.cluster.membership.mesh_port import MeshPort

STATES: Final = ("alive", "suspect", "dead", "left")
DETAIL: Final = "{detail}"
"""Stands in `Place.labels` for the detail that the mesh counted."""
_PER_MICROSECOND: Final = 1e-6
_PER_MILLISECOND: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Place:
    """The metric and labels under which one counter of the mesh is shown."""

    metric: Metric
    labels: tuple[str, ...] = ()
    unit: float = 1.0


PLACES: Final[Mapping[str, Place]] = {
    # `probe_ok` counts every answered probe; what relays and TCP brought is taken off in `_by_tcp`.
    "probe_ok": Place(mesh_metrics.MESH_PROBES, ("direct",)),
    "probe_indirect_ok": Place(mesh_metrics.MESH_PROBES, ("relay",)),
    "probe_failed": Place(mesh_metrics.MESH_PROBES, ("failed",)),
    "probe_void": Place(mesh_metrics.MESH_PROBES, ("void",)),
    "udp_blocked": Place(mesh_metrics.MESH_UDP_BLOCKED),
    "rtt_us": Place(mesh_metrics.MESH_ROUND_TRIPS, unit=_PER_MICROSECOND),
    "suspected": Place(mesh_metrics.MESH_DOUBTS, ("suspected",)),
    "confirmed": Place(mesh_metrics.MESH_DOUBTS, ("confirmed",)),
    "hastened": Place(mesh_metrics.MESH_DOUBTS, ("hastened",)),
    "refuted": Place(mesh_metrics.MESH_DOUBTS, ("refuted",)),
    "refuted_self": Place(mesh_metrics.MESH_DOUBTS, ("refuted_self",)),
    "spared": Place(mesh_metrics.MESH_DOUBTS, ("spared",)),
    "died": Place(mesh_metrics.MESH_DEATHS),
    "accusation_sent": Place(mesh_metrics.MESH_ACCUSATIONS, ("sent", "")),
    "accusation_withheld": Place(mesh_metrics.MESH_ACCUSATIONS, ("withheld", DETAIL)),
    "accusation_ignored": Place(mesh_metrics.MESH_ACCUSATIONS, ("ignored", "")),
    "flap": Place(mesh_metrics.MESH_RETURNS, ("flap",)),
    "held": Place(mesh_metrics.MESH_RETURNS, ("held",)),
    "healing": Place(mesh_metrics.MESH_RETURNS, ("sought",)),
    "told": Place(mesh_metrics.MESH_TOLD, ("others",)),
    "told_self": Place(mesh_metrics.MESH_TOLD, ("self",)),
    "superseded": Place(mesh_metrics.MESH_LIVES, ("superseded",)),
    "boot_raised": Place(mesh_metrics.MESH_LIVES, ("boot_raised",)),
    "forgotten": Place(mesh_metrics.MESH_LIVES, ("forgotten",)),
    "stall": Place(mesh_metrics.MESH_STALLS),
    "stall_ms": Place(mesh_metrics.MESH_STALL_SECONDS, unit=_PER_MILLISECOND),
    "datagrams_in": Place(mesh_metrics.MESH_DATAGRAMS, ("in",)),
    "datagrams_out": Place(mesh_metrics.MESH_DATAGRAMS, ("out",)),
    "datagram_bytes_in": Place(mesh_metrics.MESH_DATAGRAM_BYTES, ("in",)),
    "datagram_bytes_out": Place(mesh_metrics.MESH_DATAGRAM_BYTES, ("out",)),
    "datagram_lost": Place(mesh_metrics.MESH_LOST, (DETAIL,)),
    "refused": Place(mesh_metrics.MESH_REFUSED, (DETAIL,)),
    "misdirected": Place(mesh_metrics.MESH_IGNORED, ("misdirected",)),
    "stranger": Place(mesh_metrics.MESH_IGNORED, ("stranger",)),
    "echo": Place(mesh_metrics.MESH_IGNORED, ("echo",)),
    "relayed": Place(mesh_metrics.MESH_RELAYED),
    "exchange": Place(mesh_metrics.MESH_EXCHANGES, (DETAIL,)),
    "exchange_ended": Place(mesh_metrics.MESH_EXCHANGE_ENDS, (DETAIL,)),
    "exchange_dropped": Place(mesh_metrics.MESH_EXCHANGE_ENDS, ("dropped",)),
    "exchange_refused": Place(mesh_metrics.MESH_EXCHANGE_ENDS, ("refused",)),
    "stream_served": Place(mesh_metrics.MESH_STREAMS_SERVED, (DETAIL,)),
    "stream_refused": Place(mesh_metrics.MESH_STREAMS_REFUSED, (DETAIL,)),
    "stream_failed": Place(mesh_metrics.MESH_STREAMS_FAILED, (DETAIL,)),
    "stream_ping_refused": Place(mesh_metrics.MESH_STREAMS_FAILED, ("too_many_pings",)),
    "core_fault": Place(mesh_metrics.MESH_FAULTS, ("core",)),
    "stream_fault": Place(mesh_metrics.MESH_FAULTS, ("stream",)),
    "snapshot_saved": Place(mesh_metrics.MESH_SNAPSHOTS, ("saved",)),
    "snapshot_failed": Place(mesh_metrics.MESH_SNAPSHOTS, ("failed",)),
}
STATE_PLACES: Final[Mapping[str, Place]] = {
    "document_full": Place(state_metrics.STATE_FULL),
    "rumor_left_out": Place(state_metrics.STATE_UPKEEP, ("left_out",)),
    "state_epoch": Place(state_metrics.STATE_UPKEEP, ("epoch",)),
    "state_forgotten": Place(state_metrics.STATE_UPKEEP, ("forgotten",)),
    "state_gap": Place(state_metrics.STATE_UPKEEP, ("gap",)),
    "state_resealed": Place(state_metrics.STATE_UPKEEP, ("resealed",)),
    "state_learned": Place(state_metrics.STATE_LEARNED, (DETAIL,)),
    "state_refused": Place(state_metrics.STATE_REFUSED, (DETAIL,)),
    "state_file": Place(state_metrics.STATE_SAVES, (DETAIL,)),
    "state_fault": Place(state_metrics.STATE_FAULTS),
    "rights_packets": Place(rights_metrics.RIGHTS_PACKETS, (DETAIL,)),
    "rights_file": Place(rights_metrics.RIGHTS_SAVES, (DETAIL,)),
    "rights_difference": Place(rights_metrics.RIGHTS_DIFFERENCES),
    "rights_refused": Place(rights_metrics.RIGHTS_REFUSED, (DETAIL,)),
    "hint_fault": Place(state_metrics.STATE_FAULTS),
    "hint_call": Place(hint_metrics.PREFIX_HINT_CALLS, (DETAIL,)),
}
SAID_TWICE: Final = frozenset({"exchange_failed"})
"""The core counts these, and whoever does the work (`exchange_ended`) does so again."""


Counted: TypeAlias = Mapping[tuple[str, str], int]
"""(name, detail) → how often."""


class SharedState(Protocol):
    """Port to shared state, as far as metrics read it; `smg_mesh.shared.Shared` has all of it."""

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...

    @property
    def unsaved(self) -> int:
        """How many documents are not on disk yet."""
        ...

    def state(self) -> Mapping[str, "NamespaceState"]:
        """Return what is held, by kind."""
        ...

    def counters(self) -> Counted:
        """Return what was counted."""
        ...


def watch_state(meters: Meters, shared: SharedState) -> None:
    """Let scrapes read what the nodes share."""

    def of_kinds(pick: Callable[["NamespaceState"], int]) -> Reading:
        return lambda: {(kind,): pick(state) for kind, state in shared.state().items()}

    meters.watch(state_metrics.STATE_HELD, lambda: {(): shared.held})
    meters.watch(state_metrics.STATE_UNSAVED, lambda: {(): shared.unsaved})
    meters.watch(state_metrics.STATE_ENTRIES, of_kinds(lambda state: state.entries))
    meters.watch(state_metrics.STATE_BYTES, of_kinds(lambda state: state.size_bytes))
    meters.watch(state_metrics.STATE_DOCUMENTS, of_kinds(lambda state: state.documents))
    meters.watch(state_metrics.STATE_OTHER, lambda: _others(shared.counters(), STATE_PLACES))
    _watch_places(meters, STATE_PLACES, shared.counters)


def watch_mesh(meters: Meters, mesh: "MeshPort") -> None:
    """Let scrapes read the mesh."""
    meters.watch(
        mesh_metrics.MESH_MEMBERS,
        lambda: {(state,): mesh.status().members.get(state, 0) for state in STATES},
    )
    meters.watch(mesh_metrics.MESH_HEALTH, lambda: {(): mesh.status().health})
    meters.watch(mesh_metrics.MESH_JOINED, lambda: {(): mesh.status().joined})
    meters.watch(mesh_metrics.MESH_ISOLATED, lambda: {(): mesh.status().isolated})
    meters.watch(mesh_metrics.MESH_OTHER, lambda: _others(mesh.counters(), PLACES))
    _watch_places(meters, PLACES, mesh.counters)
    meters.watch(mesh_metrics.MESH_PROBES, lambda: _by_tcp(mesh.counters()))


def _watch_places(
    meters: Meters, places: Mapping[str, Place], counters: Callable[[], Counted]
) -> None:
    for metric in dict.fromkeys(place.metric for place in places.values()):
        meters.watch(metric, _reading(places, counters, metric))


def _reading(
    places: Mapping[str, Place], counters: Callable[[], Counted], metric: Metric
) -> Reading:
    def reading() -> Mapping[tuple[str, ...], float]:
        totals = _at_rest(places, metric)
        for (name, detail), value in counters().items():
            place = places.get(name)
            if place is not None and place.metric is metric:
                labels = tuple(detail if label == DETAIL else label for label in place.labels)
                totals[labels] = totals.get(labels, 0) + value * place.unit
        return totals

    return reading


def _at_rest(places: Mapping[str, Place], metric: Metric) -> dict[tuple[str, ...], float]:
    """The series that are there from the start, at zero, so that a first increase can be seen."""
    fixed = [place.labels for place in places.values() if place.metric is metric]
    return dict.fromkeys((labels for labels in fixed if DETAIL not in labels), 0.0)


def _by_tcp(counters: Counted) -> Mapping[tuple[str, ...], float]:
    """Return probes by way: those relays and TCP answered are no direct ones; readings add up."""
    relayed, tcp = counters.get(("probe_indirect_ok", ""), 0), counters.get(("udp_blocked", ""), 0)
    return {("direct",): -(relayed + tcp), ("tcp",): tcp}


def _others(counters: Counted, places: Mapping[str, Place]) -> Mapping[tuple[str, ...], float]:
    return {
        key: value
        for key, value in counters.items()
        if key[0] not in places and key[0] not in SAID_TWICE
    }
