"""Background run metrics: responses that are made after their client has gone."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

RUNS = Metric(
    "smg_node_registered_runs",
    "gauge",
    "Responses made here now that outlive who asked for them.",
    pulled=True,
)
RUNS_BEGUN = Metric(
    "smg_node_registered_runs_begun_total",
    "counter",
    "Those that were begun: background, or resumable (a stream that goes on without its client).",
    ("kind",),
    pulled=True,
)
RUNS_ENDED = Metric(
    "smg_node_registered_runs_ended_total",
    "counter",
    "Those that are over: completed, incomplete, failed, cancelled, or lost (ended by another node, or deleted).",
    ("outcome",),
    pulled=True,
)
RUNS_ADOPTED = Metric(
    "smg_node_registered_runs_adopted_total",
    "counter",
    "Those of owners that are gone that this node took over: failed, cancelled, lost (somebody else ended it meanwhile),"
    " or error (it could not be done then, and is tried again).",
    ("outcome",),
    pulled=True,
)
RUN_LOG_LAG_SECONDS = Metric(
    "smg_node_registered_runs_log_lag_seconds",
    "gauge",
    "How long the oldest event that is not in its log has waited; 0 if none does.",
    pulled=True,
)
RUN_LOG_APPENDS = Metric(
    "smg_node_registered_runs_log_appends_total",
    "counter",
    "Writes into logs of events.",
    pulled=True,
)
RUN_LOG_WAITING_BYTES = Metric(
    "smg_node_registered_runs_log_waiting_bytes",
    "gauge",
    "Bytes of events in memory that are not in a log yet.",
    pulled=True,
)
STREAMS_RESUMED = Metric(
    "smg_node_streams_resumed_total",
    "counter",
    "Streams that clients went on with after a break (Responses `starting_after`, Interactions `last_event_id` or"
    " `continuation_token`), once over. `cause`: cut (the connection), drain (its node drained or left), death (the node"
    " that made the answer died). `ending`: whole, left (the client, or a drain), lost (it could not go on), refused"
    " (never begun: the log is gone, or the store).",
    ("api", "cause", "ending"),
    pulled=True,
)

RUN_METRICS: Final[tuple[Metric, ...]] = (
    RUNS,
    RUNS_BEGUN,
    RUNS_ENDED,
    RUNS_ADOPTED,
    RUN_LOG_LAG_SECONDS,
    RUN_LOG_APPENDS,
    RUN_LOG_WAITING_BYTES,
    STREAMS_RESUMED,
)
