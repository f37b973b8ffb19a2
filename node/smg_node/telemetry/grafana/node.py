"""Node dashboards: history and its store, and the processes of a node."""

from typing import Final

from smg_node.telemetry.grafana.panels import (
    Board,
    Panel,
    Section,
    called,
    largest,
    mean,
    quantile,
    rate,
    recorded,
    smallest,
    total,
)
from smg_node.telemetry.metrics.cluster_metrics import PROCESS_CPU, PROCESS_MEMORY
from smg_node.telemetry.metrics.declared import background_runs as runs
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import processes, store

HISTORY: Final = Board(
    "history",
    "smg-node: history",
    "The store of responses and conversations, what waits for it, and responses that outlive their clients.",
    (
        Section(
            "The store",
            (
                Panel(
                    "Reached",
                    "0 on a node that does not reach it.",
                    "bool",
                    (smallest(store.STORE_UP, "instance"),),
                    most=1.0,
                ),
                Panel(
                    "Operations",
                    "By what was asked and how it ended; away ones were not even tried.",
                    "cps",
                    (rate(store.STORE_OPERATIONS, "op", "outcome"),),
                ),
                Panel(
                    "Duration",
                    "19 of 20 were faster.",
                    "s",
                    (recorded("smg:store_operation_duration_seconds:p95_5m", "{{op}}"),),
                ),
                Panel(
                    "Connections",
                    "In use, and how many there may be.",
                    "short",
                    (
                        called(total(store.STORE_POOL_IN_USE, "instance"), "in use {{instance}}"),
                        called(total(store.STORE_POOL_SIZE, "instance"), "most {{instance}}"),
                        called(total(store.STORE_POOL_WAITING, "instance"), "waiting {{instance}}"),
                    ),
                ),
                Panel(
                    "Wait for a connection",
                    "Mean of those that had to wait, and how many had to.",
                    "s",
                    (
                        mean(store.STORE_POOL_WAIT_SECONDS, store.STORE_POOL_WAITS, "instance"),
                        called(rate(store.STORE_POOL_WAITS), "waits a second"),
                    ),
                ),
                Panel(
                    "Rows",
                    "As the node that removes old ones last saw.",
                    "short",
                    (largest(store.STORE_ROWS, "table"),),
                ),
                Panel("Removed", "Rows that were over.", "cps", (rate(store.STORE_PURGED),)),
                Panel(
                    "Depth of chains",
                    "How many responses a response goes on from.",
                    "short",
                    (
                        quantile(store.STORE_CHAIN_DEPTH, 0.5),
                        quantile(store.STORE_CHAIN_DEPTH, 0.95),
                    ),
                ),
                Panel(
                    "Refused by quota",
                    "A tenant keeps as much as it may.",
                    "cps",
                    (rate(store.STORE_QUOTA_REFUSED),),
                ),
            ),
        ),
        Section(
            "While the store is away",
            (
                Panel(
                    "Turns that wait",
                    "On the nodes' own disks.",
                    "short",
                    (total(store.STORE_SPOOL_TURNS, "instance"),),
                ),
                Panel(
                    "Their bytes",
                    "Bounded by history.spool_*.",
                    "bytes",
                    (total(store.STORE_SPOOL_BYTES, "instance"),),
                ),
                Panel(
                    "The oldest",
                    "Waits for so long.",
                    "s",
                    (largest(store.STORE_SPOOL_OLDEST_SECONDS, "instance"),),
                ),
                Panel(
                    "Put on disk",
                    "Turns a second.",
                    "cps",
                    (rate(store.STORE_SPOOLED, "instance"),),
                ),
                Panel(
                    "Lost to both",
                    "Neither store nor disk took these: their requests failed.",
                    "cps",
                    (rate(store.STORE_SPOOL_REFUSED, "instance"),),
                ),
                Panel(
                    "Dead turns",
                    "The store does not take them: `smg-admin db dead list`.",
                    "short",
                    (total(store.STORE_DEAD_TURNS, "instance"),),
                ),
            ),
        ),
        Section(
            "Asked of other nodes",
            (
                Panel(
                    "Operations",
                    "Where history is local, about threads that another node holds.",
                    "cps",
                    (rate(store.STORE_ASKED, "op", "outcome"),),
                    width=12,
                ),
                Panel(
                    "Duration",
                    "There and back.",
                    "s",
                    (quantile(store.STORE_ASKED_SECONDS, 0.95, "op"),),
                    width=12,
                ),
            ),
        ),
        Section(
            "Responses that outlive their clients",
            (
                Panel("Under way", "By node.", "short", (total(runs.RUNS, "instance"),)),
                Panel(
                    "Begun and over",
                    "By kind, and by how they ended.",
                    "cps",
                    (
                        called(rate(runs.RUNS_BEGUN, "kind"), "begun: {{kind}}"),
                        called(rate(runs.RUNS_ENDED, "outcome"), "ended: {{outcome}}"),
                    ),
                ),
                Panel(
                    "Taken over",
                    "From nodes that are gone, by what became of them.",
                    "cps",
                    (rate(runs.RUNS_ADOPTED, "outcome"),),
                ),
                Panel(
                    "Log behind",
                    "How long the oldest event that is not in its log has waited.",
                    "s",
                    (largest(runs.RUN_LOG_LAG_SECONDS, "instance"),),
                ),
                Panel("Log writes", "A second.", "cps", (rate(runs.RUN_LOG_APPENDS, "instance"),)),
                Panel(
                    "Bytes not in a log yet",
                    "In memory.",
                    "bytes",
                    (total(runs.RUN_LOG_WAITING_BYTES, "instance"),),
                ),
                Panel(
                    "Streams resumed, by cause",
                    "Clients that went on with a stream after a break: cut, drained, or its node died.",
                    "cps",
                    (rate(runs.STREAMS_RESUMED, "api", "cause"),),
                    width=12,
                ),
                Panel(
                    "Streams resumed, by ending",
                    "Whether their clients got all the rest.",
                    "cps",
                    (rate(runs.STREAMS_RESUMED, "api", "ending"),),
                    width=12,
                ),
            ),
        ),
    ),
)

PROCESSES: Final = Board(
    "processes",
    "smg-node: processes",
    "What nodes cost and how they run: processors, memory, event loops, and what they keep to tell of requests.",
    (
        Section(
            "Nodes",
            (
                Panel(
                    "Version",
                    "Which runs where.",
                    "short",
                    (largest(declared.BUILD, "instance", "version"),),
                    "table",
                ),
                Panel(
                    "Processors",
                    "Kept busy, all processes of a node together.",
                    "short",
                    (rate(PROCESS_CPU, "instance"),),
                ),
                Panel(
                    "Memory",
                    "All processes; pages that they share count more than once.",
                    "bytes",
                    (total(PROCESS_MEMORY, "instance"),),
                ),
                Panel(
                    "Data processes",
                    "That are linked.",
                    "short",
                    (total(processes.PROCESSES_LINKED, "instance"),),
                ),
                Panel(
                    "Data processes lost",
                    "Ended without having been told to: their streams were cut.",
                    "cps",
                    (rate(processes.PROCESSES_LOST, "instance"),),
                ),
                Panel(
                    "Scrapes that failed",
                    "Metrics that could not be read.",
                    "cps",
                    (rate(declared.SCRAPE_ERRORS, "instance", "metric"),),
                ),
            ),
        ),
        Section(
            "Event loops",
            (
                Panel(
                    "Delay",
                    "99 of 100 timers were less late.",
                    "s",
                    (recorded("smg:loop_lag_seconds:p99_5m", "{{instance}}"),),
                ),
                Panel(
                    "Stalls",
                    "Late by over 100 ms.",
                    "cps",
                    (rate(declared.LOOP_STALLS, "instance"),),
                ),
                Panel(
                    "Pauses for garbage",
                    "Seconds in a second that everything stood still.",
                    "s",
                    (rate(declared.GC_PAUSE_SECONDS, "instance", "generation"),),
                ),
            ),
        ),
        Section(
            "What is kept",
            (
                Panel(
                    "Journeys",
                    "Requests that `smg-admin explain` can tell of.",
                    "short",
                    (total(declared.JOURNEYS, "instance"),),
                ),
                Panel(
                    "Their bytes",
                    "Of those that ended.",
                    "bytes",
                    (total(declared.JOURNEYS_BYTES, "instance"),),
                ),
                Panel(
                    "Log lines lost",
                    "Whoever reads the log is too slow.",
                    "cps",
                    (rate(declared.LOG_LINES_DROPPED, "instance"),),
                ),
            ),
        ),
    ),
)
