"""Store metrics: operations of the history store, their times, rows and depth of chains."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

_SECONDS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
)  # fmt: skip


def _pulled(name: str, kind: str, meaning: str) -> Metric:
    assert kind in ("counter", "gauge")
    return Metric(
        f"smg_node_store_{name}",
        "counter" if kind == "counter" else "gauge",
        meaning,
        pulled=True,
    )


STORE_OPERATIONS = Metric(
    "smg_node_store_operations_total",
    "counter",
    "What was asked of the store. `outcome` is ok, cancelled, away (not asked at all, because it is known to be away),"
    " or how it failed: unavailable, conflict, too_large, bad_reference, corrupt, rejected.",
    ("op", "outcome"),
)
STORE_SECONDS = Metric(
    "smg_node_store_operation_duration_seconds",
    "histogram",
    "How long the store took.",
    ("op",),
    _SECONDS,
)
STORE_ASKED = Metric(
    "smg_node_store_asked_total",
    "counter",
    "What was asked of other nodes about threads that they hold. `outcome` is ok, cancelled, or how it failed:"
    " unavailable (also if the node does not answer), conflict, too_large, bad_reference, corrupt, rejected.",
    ("op", "outcome"),
)
STORE_ASKED_SECONDS = Metric(
    "smg_node_store_asked_duration_seconds",
    "histogram",
    "How long other nodes took for what was asked of them, with the way there and back.",
    ("op",),
    _SECONDS,
)
STORE_UP = _pulled("up", "gauge", "1 if the store answers, 0 if it is away.")
STORE_SPOOLED = _pulled("spooled_total", "counter", "Turns that were put on this node's disk.")
STORE_SPOOL_TURNS = _pulled("spool_turns", "gauge", "Turns on disk that wait for the store.")
STORE_SPOOL_BYTES = _pulled("spool_bytes", "gauge", "Bytes of turns that wait for the store.")
STORE_SPOOL_OLDEST_SECONDS = _pulled(
    "spool_oldest_seconds", "gauge", "How long the oldest of them waits; 0 if none does."
)
STORE_SPOOL_REFUSED = _pulled(
    "spool_refused_total",
    "counter",
    "Turns that could not be kept on disk either: it was full, or it failed.",
)
STORE_DEAD_TURNS = _pulled(
    "dead_turns",
    "gauge",
    "Turns that the store does not take, whatever is tried: `smg-admin db dead list` shows them.",
)
STORE_PURGED = _pulled("purged_total", "counter", "Rows that were over and are removed.")
STORE_ROWS = Metric(
    "smg_node_store_rows",
    "gauge",
    "About how many rows there are, as the node that removes what is over last saw.",
    ("table",),
    pulled=True,
)

STORE_POOL_SIZE = _pulled("pool_size", "gauge", "Connections that this node may have to the store.")
STORE_POOL_IN_USE = _pulled("pool_in_use", "gauge", "Connections to the store that are in use.")
STORE_POOL_WAITING = _pulled(
    "pool_waiting", "gauge", "Operations that wait for a connection to the store."
)
STORE_POOL_WAITS = _pulled(
    "pool_waits_total", "counter", "Operations that had to wait for a connection to the store."
)
STORE_POOL_WAIT_SECONDS = _pulled(
    "pool_wait_seconds_total", "counter", "How long they waited, all together."
)
STORE_CHAIN_DEPTH = Metric(
    "smg_node_store_chain_depth",
    "histogram",
    "How many responses a response goes on from, of those that go on from any.",
    (),
    (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0),
)
STORE_QUOTA_REFUSED = _pulled(
    "quota_refused_total",
    "counter",
    "What was refused because its tenant keeps as much as it may (storage.quota).",
)

STORE_METRICS: Final[tuple[Metric, ...]] = (
    STORE_POOL_SIZE,
    STORE_POOL_IN_USE,
    STORE_POOL_WAITING,
    STORE_POOL_WAITS,
    STORE_POOL_WAIT_SECONDS,
    STORE_CHAIN_DEPTH,
    STORE_QUOTA_REFUSED,
    STORE_OPERATIONS,
    STORE_SECONDS,
    STORE_ASKED,
    STORE_ASKED_SECONDS,
    STORE_UP,
    STORE_SPOOLED,
    STORE_SPOOL_TURNS,
    STORE_SPOOL_BYTES,
    STORE_SPOOL_OLDEST_SECONDS,
    STORE_SPOOL_REFUSED,
    STORE_DEAD_TURNS,
    STORE_PURGED,
    STORE_ROWS,
)
