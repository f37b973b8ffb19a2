from dataclasses import replace

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from smg_mesh.shared import NOTES as STATE_NOTES
from smg_mesh.shared import NamespaceState
from smg_mesh.swim.counter_names import NOTES
from smg_node.cluster.cluster_meters import (
    PLACES,
    SAID_TWICE,
    STATE_PLACES,
    watch_mesh,
    watch_state,
)
from smg_node.telemetry.metrics.declared.mesh import MESH_METRICS, MESH_OTHER
from smg_node.telemetry.metrics.declared.prefix_hints import HINT_METRICS
from smg_node.telemetry.metrics.declared.rights import RIGHTS_METRICS
from smg_node.telemetry.metrics.declared.shared_state import STATE_METRICS
from smg_node.telemetry.metrics.meters import Meters
from support.mesh.fake_mesh import FakeMesh


class State:
    """Shared state as a scrape reads it."""

    held = False
    unsaved = 3

    def __init__(self) -> None:
        self.counted: dict[tuple[str, str], int] = {}

    def state(self) -> dict[str, NamespaceState]:
        return {
            "workers": NamespaceState("workers", "00", 7, 2_048, 5, 1),
            "sticky": NamespaceState("sticky", "00", 2, 64, 1, 0),
        }

    def counters(self) -> dict[tuple[str, str], int]:
        return self.counted


def scrape_state(state: State) -> dict[str, float]:
    """Return every series of shared state, named as those of the mesh."""
    meters = Meters(CollectorRegistry(), version="1")
    watch_state(meters, state)
    page = meters.exposition("")[0].decode()
    return {
        " ".join(
            (sample.name.removeprefix("smg_node_state_"), *sample.labels.values())
        ): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("smg_node_state_")
    }


def scrape(mesh: FakeMesh) -> dict[str, float]:
    """Return every series of the mesh: name and label values, by name of label, to value."""
    meters = Meters(CollectorRegistry(), version="1")
    watch_mesh(meters, mesh)
    page = meters.exposition("")[0].decode()
    return {
        " ".join(
            (sample.name.removeprefix("smg_node_mesh_"), *sample.labels.values())
        ): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("smg_node_mesh_")
    }


def test_every_note_of_the_core_has_a_metric() -> None:
    assert NOTES.keys() <= PLACES.keys() | SAID_TWICE
    assert not PLACES.keys() & SAID_TWICE


def test_every_counter_of_shared_state_has_a_metric() -> None:
    assert STATE_NOTES.keys() == STATE_PLACES.keys()


def test_every_place_has_a_value_for_each_label() -> None:
    for places, metrics in (
        (PLACES, MESH_METRICS),
        (STATE_PLACES, (*STATE_METRICS, *HINT_METRICS, *RIGHTS_METRICS)),
    ):
        for name, place in places.items():
            assert len(place.labels) == len(place.metric.labels), name
            assert place.metric in metrics, name


def test_shared_state_is_gauges_and_counters_and_every_metric_of_it_is_read() -> None:
    state = State()
    state.counted = {
        ("document_full", "settings/3"): 2,
        ("document_full", "settings/4"): 1,
        ("state_gap", ""): 4,
        ("state_learned", "workers"): 5,
        ("state_refused", "update"): 6,
        ("state_file", "saved"): 7,
        ("state_fault", ""): 8,
        ("brand_new", "detail"): 9,
    }
    seen = scrape_state(state)
    assert (seen["held"], seen["unsaved"]) == (0, 3)
    assert (seen["entries workers"], seen["bytes workers"], seen["documents sticky"]) == (
        7,
        2048,
        1,
    )
    assert seen["full_total"] == 3  # documents are no labels: there are too many
    assert (seen["upkeep_total gap"], seen["upkeep_total epoch"]) == (4, 0)
    assert seen["learned_total workers"] == 5
    assert seen["refused_total update"] == 6
    assert seen["saves_total saved"] == 7
    assert seen["faults_total"] == 8
    assert seen["other_total detail brand_new"] == 9
    names = {metric.name.removeprefix("smg_node_state_") for metric in STATE_METRICS}
    assert {series.split(" ")[0] for series in seen} == names


def test_every_metric_of_the_mesh_is_read() -> None:
    mesh = FakeMesh()
    mesh.counted = {(name, "x"): 1 for name in PLACES} | {("new", ""): 1}
    seen = scrape(mesh)
    names = {metric.name.removeprefix("smg_node_mesh_") for metric in MESH_METRICS}
    assert {series.split(" ")[0] for series in seen} == names


def test_the_state_of_the_mesh_is_gauges() -> None:
    mesh = FakeMesh()
    mesh.state = replace(mesh.state, isolated=True)
    seen = scrape(mesh)
    assert [seen[f"members {state}"] for state in ("alive", "suspect", "dead", "left")] == [
        2,
        0,
        1,
        0,
    ]
    assert (seen["health"], seen["joined"], seen["isolated"]) == (2, 1, 1)


def test_probes_are_told_apart_by_what_brought_the_answer() -> None:
    mesh = FakeMesh()
    mesh.counted = {
        ("probe_ok", ""): 10,
        ("probe_indirect_ok", ""): 2,
        ("udp_blocked", ""): 1,
        ("probe_failed", ""): 4,
        ("rtt_us", ""): 2_500_000,
    }
    seen = scrape(mesh)
    outcomes = {key: seen[f"probes_total {key}"] for key in ("direct", "relay", "tcp", "failed")}
    assert outcomes == {"direct": 7, "relay": 2, "tcp": 1, "failed": 4}
    assert seen["udp_blocked_total"] == 1
    assert seen["round_trip_seconds_total"] == 2.5


def test_details_become_labels_and_names_of_peers_do_not() -> None:
    mesh = FakeMesh()
    mesh.counted = {
        ("refused", "tag"): 3,
        ("accusation_withheld", "rate"): 2,
        ("accusation_ignored", "node-17"): 5,
        ("accusation_ignored", "node-18"): 6,
        ("exchange", "heal"): 1,
        ("exchange_ended", "ok"): 4,
        ("exchange_ended", "failed"): 2,
        ("exchange_failed", ""): 2,
        ("stream_failed", "key"): 5,
        ("datagrams_in", ""): 9,
        ("stall_ms", ""): 1500,
    }
    seen = scrape(mesh)
    assert seen["refused_total tag"] == 3
    assert seen["accusations_total withheld rate"] == 2
    assert seen["accusations_total ignored "] == 11
    assert seen["exchanges_total heal"] == 1
    assert (seen["exchanges_ended_total ok"], seen["exchanges_ended_total failed"]) == (4, 2)
    assert seen["streams_failed_total key"] == 5
    assert seen["datagrams_total in"] == 9
    assert seen["stall_seconds_total"] == 1.5
    assert not [series for series in seen if "node-1" in series]


def test_what_cannot_happen_yet_is_there_at_zero() -> None:
    seen = scrape(FakeMesh())
    assert seen["suspicions_total suspected"] == 0
    assert seen["deaths_total"] == 0
    assert seen["datagrams_total out"] == 0


def test_a_counter_nobody_expected_is_not_lost() -> None:
    mesh = FakeMesh()
    mesh.counted = {("brand_new", "detail"): 3}
    assert scrape(mesh)["other_total detail brand_new"] == 3
    assert MESH_OTHER in MESH_METRICS
