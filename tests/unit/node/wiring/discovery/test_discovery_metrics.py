"""Metrics of discovery: each source under a label that tells whose it is."""

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest

from smg_node.discovery.service import SourceState
from smg_node.telemetry.metrics.meters import Meters
from smg_node.wiring.discovery.metrics import DiscoveryMetrics

CHAT = SourceState("kubernetes", "chat", "ok", True, True, 3, 1.5, 0, 1, 0)
OWN = replace(CHAT, kind="file", name="file", standing="failing", age_s=-1.0)


def test_a_list_of_a_nodes_own_is_called_after_the_node() -> None:
    registry = CollectorRegistry()
    metrics = DiscoveryMetrics(Meters(registry, version="1"), "n1")
    metrics.watch(lambda: [CHAT, OWN, replace(OWN, name="command", standing="ok")])
    metrics.wrote("kubernetes/chat", "add", 3)
    page = generate_latest(registry).decode()
    for line in (
        'smg_node_discovery_failing{source="kubernetes/chat"} 0.0',
        'smg_node_discovery_failing{source="file@n1"} 1.0',
        'smg_node_discovery_failing{source="command@n1"} 0.0',
        'smg_node_discovery_writer{source="kubernetes/chat"} 1.0',
        'smg_node_discovery_view_age_seconds{source="kubernetes/chat"} 1.5',
        'smg_node_discovery_writes_total{reason="add",source="kubernetes/chat"} 3.0',
    ):
        assert line in page
    assert 'smg_node_discovery_writer{source="file@n1"}' not in page
    assert 'smg_node_discovery_view_age_seconds{source="file@n1"}' not in page
