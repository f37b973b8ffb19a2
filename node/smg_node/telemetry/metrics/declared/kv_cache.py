"""KV cache metrics: what engines report by themselves, their cached blocks and their load."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

KV_BATCHES = Metric(
    "smg_node_kv_batches_total",
    "counter",
    "Batches of KV events that engines sent.",
    pulled=True,
)
KV_SUBSCRIPTIONS_ENDED = Metric(
    "smg_node_kv_subscriptions_ended_total",
    "counter",
    "Subscriptions to KV events that ended. `reason` is gap (one was missing), lost or cursor (the engine"
    " cannot go on from there), ended, unreachable, unimplemented, failed or relieved (no longer our part).",
    ("reason",),
    pulled=True,
)
KV_SILENCE_SECONDS = Metric(
    "smg_node_kv_silence_seconds",
    "gauge",
    "Since the last word of a followed engine's KV events.",
    ("worker",),
    pulled=True,
    merge="max",
)
KV_RESYNCS = Metric(
    "smg_node_kv_resyncs_total",
    "counter",
    "Times that what was known of an engine's cache was given up, to be told anew.",
    pulled=True,
)
KV_BLOCKS_UNPLACED = Metric(
    "smg_node_kv_blocks_unplaced_total",
    "counter",
    "Blocks that engines told of and that are not known all the same. `reason` is orphan (what came before"
    " it was never told), refused (beyond a bound) or confused (its name stands for another).",
    ("reason",),
    pulled=True,
)
KV_STUMBLES = Metric(
    "smg_node_kv_stumbles_total",
    "counter",
    "Times that what is known of caches could not be kept up, by a mistake of ours; requests went on.",
    pulled=True,
)
KV_INDEX_BLOCKS = Metric(
    "smg_node_kv_index_blocks",
    "gauge",
    "Blocks of prompts of which this node knows who has them cached.",
    pulled=True,
    merge="max",
)
KV_INDEX_EVICTED = Metric(
    "smg_node_kv_index_evicted_total",
    "counter",
    "Blocks that were forgotten because there were too many.",
    pulled=True,
)
ENGINE_RUNNING = Metric(
    "smg_node_engine_running_requests",
    "gauge",
    "Requests an engine is working on, by its own account.",
    ("worker",),
    pulled=True,
    merge="max",
)
ENGINE_WAITING = Metric(
    "smg_node_engine_waiting_requests",
    "gauge",
    "Requests that wait at an engine, by its own account.",
    ("worker",),
    pulled=True,
    merge="max",
)
ENGINE_KV_USAGE = Metric(
    "smg_node_engine_kv_usage_ratio",
    "gauge",
    "Share of an engine's KV memory in use; that of its fullest rank.",
    ("worker",),
    pulled=True,
    merge="max",
)
ENGINE_TOKENS_PER_SECOND = Metric(
    "smg_node_engine_tokens_per_second",
    "gauge",
    "Tokens an engine generates a second, by its own account.",
    ("worker",),
    pulled=True,
    merge="max",
)
ENGINE_LOAD_AGE_SECONDS = Metric(
    "smg_node_engine_load_age_seconds",
    "gauge",
    "Age of what an engine last said of its load; that of its oldest rank.",
    ("worker",),
    pulled=True,
    merge="max",
)
WORKER_WAIT_SECONDS = Metric(
    "smg_node_worker_wait_seconds",
    "gauge",
    "How long a request that is placed now is expected to wait at a worker.",
    ("worker",),
    pulled=True,
    merge="max",
)
WORKER_PREFILL_RATE = Metric(
    "smg_node_worker_prefill_tokens_per_second",
    "gauge",
    "Prompt tokens a worker computes a second, as measured.",
    ("worker",),
    pulled=True,
    merge="max",
)
WORKER_STUCK = Metric(
    "smg_node_worker_stuck",
    "gauge",
    "1 while an engine says nothing although it has work.",
    ("worker",),
    pulled=True,
    merge="max",
)

KV_METRICS: Final[tuple[Metric, ...]] = (
    KV_BATCHES,
    KV_SUBSCRIPTIONS_ENDED,
    KV_SILENCE_SECONDS,
    KV_RESYNCS,
    KV_BLOCKS_UNPLACED,
    KV_STUMBLES,
    KV_INDEX_BLOCKS,
    KV_INDEX_EVICTED,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    ENGINE_KV_USAGE,
    ENGINE_TOKENS_PER_SECOND,
    ENGINE_LOAD_AGE_SECONDS,
    WORKER_WAIT_SECONDS,
    WORKER_PREFILL_RATE,
    WORKER_STUCK,
)
