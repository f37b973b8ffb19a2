"""Gauges of nodes: values read from their Prometheus metrics."""

import re
from collections.abc import Sequence
from functools import partial

from smg_chaos.gameday.agents.cluster import Cluster
from smg_chaos.gameday.agents.smg_agent import METRICS_PORT
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.statistics import Figure

OPEN = "smg_node_limited_requests_open"
"""Requests that limits apply to and that are not settled yet."""
PACKETS = 'smg_node_rights_packets_total{direction="out"}'
"""Datagrams about rights that a node sent."""
_ANSWER_S = 10.0
_PACKETS_MAX = 40.0


async def gauges(cluster: Cluster, names: Sequence[str], series: str) -> list[float]:
    """Return the value of one series at each of these nodes, 0 where it has none."""
    found = []
    for name in names:
        talk = Talk(partial(cluster.lab.socket, name), "127.0.0.1", METRICS_PORT)
        try:
            _, text = await talk.ask("GET", "/metrics", timeout_s=_ANSWER_S)
        finally:
            talk.close()
        found.append(value_of(text.decode(), series))
    return found


def value_of(text: str, series: str) -> float:
    """Return the value of a series in the text of a scrape; 0 if it is not there."""
    found = re.search(f"^{re.escape(series)} (\\S+)$", text, re.MULTILINE)
    return 0.0 if found is None else float(found[1])


def packets(name: str, before: Sequence[float], after: Sequence[float], seconds: float) -> Figure:
    """Return how many datagrams about rights a node sent each second, on average over the nodes."""
    rates = [(late - early) / seconds for early, late in zip(before, after, strict=True)]
    says = f"the busiest {max(rates):.0f}"
    mean = sum(rates) / len(rates)
    return Figure(
        f"{name}: datagrams about rights, per node", mean, "packets/s", _PACKETS_MAX, says
    )
