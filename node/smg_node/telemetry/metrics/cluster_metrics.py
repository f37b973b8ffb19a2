"""Cluster metrics: the default set that a node returns to its peers when no names are asked for.

An operator watches them live. Those of the process are the client library's, and are declared here
for readers that name them.
"""

from typing import Final

from smg_node.telemetry.metrics.declared import kv_cache as kv_metrics
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import resilience as resilience_metrics
from smg_node.telemetry.metrics.declared import usage
from smg_node.telemetry.metrics.declared.processes import PROCESSES_LINKED
from smg_node.telemetry.metrics.metric import Metric

PROCESS_CPU = Metric(
    "process_cpu_seconds_total", "counter", "Time on processors, of all processes of the node."
)
PROCESS_MEMORY = Metric(
    "process_resident_memory_bytes", "gauge", "Memory of all processes of the node."
)

WATCHED: Final[tuple[Metric, ...]] = (
    declared.HTTP_INFLIGHT,
    declared.GENERATIONS,
    declared.TTFT_SECONDS,
    declared.TPOT_SECONDS,
    declared.PROMPT_TOKENS,
    declared.CACHED_TOKENS,
    declared.COMPLETION_TOKENS,
    declared.WORKERS,
    declared.WORKER_INFLIGHT,
    declared.LOOP_STALLS,
    resilience_metrics.BREAKER_STATE,
    resilience_metrics.QUEUE_WAITING,
    kv_metrics.ENGINE_RUNNING,
    kv_metrics.ENGINE_WAITING,
    kv_metrics.ENGINE_KV_USAGE,
    usage.USAGE_REQUESTS,
    usage.USAGE_REFUSED,
    usage.USAGE_PROMPT_TOKENS,
    usage.USAGE_CACHED_TOKENS,
    usage.USAGE_COMPLETION_TOKENS,
    PROCESSES_LINKED,
    PROCESS_CPU,
    PROCESS_MEMORY,
)
KNOWN: Final[dict[str, Metric]] = {
    metric.name: metric for metric in (*declared.METRICS, PROCESS_CPU, PROCESS_MEMORY)
}
"""Every metric that can be asked for, by name."""
