"""Node metrics, declared once: HTTP, generations, engines, workers; with labels and buckets.

`metrics/meters.py` makes the series out of these, `metrics/reference.py` the operator's page. The
modules beside this one have the metrics of the other topics, such as `mesh.py`, `shared_state.py`
and `kv_cache.py`.
"""

from typing import Final

from smg_node.telemetry.metrics.declared.access.issuers import ISSUER_METRICS
from smg_node.telemetry.metrics.declared.background_runs import RUN_METRICS
from smg_node.telemetry.metrics.declared.kv_cache import KV_METRICS
from smg_node.telemetry.metrics.declared.limits import LIMIT_METRICS
from smg_node.telemetry.metrics.declared.mcp import MCP_METRICS
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS
from smg_node.telemetry.metrics.declared.mesh import MESH_METRICS
from smg_node.telemetry.metrics.declared.prefix_hints import HINT_METRICS
from smg_node.telemetry.metrics.declared.processes import PROCESS_METRICS
from smg_node.telemetry.metrics.declared.providers import PROVIDER_METRICS
from smg_node.telemetry.metrics.declared.resilience import RESILIENCE_METRICS
from smg_node.telemetry.metrics.declared.rights import RIGHTS_METRICS
from smg_node.telemetry.metrics.declared.shared_state import DISCOVERY_METRICS, STATE_METRICS
from smg_node.telemetry.metrics.declared.store import STORE_METRICS
from smg_node.telemetry.metrics.declared.usage import USAGE_METRICS
from smg_node.telemetry.metrics.metric import Metric

_SECONDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
)  # fmt: skip
_TOKEN_SECONDS: Final = (
    0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0,
)  # fmt: skip
_LAG_SECONDS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


BUILD = Metric(
    "smg_node_build_info", "gauge", "Always 1; the labels say what runs.", ("version",), merge="max"
)

HTTP_REQUESTS = Metric(
    "smg_node_http_requests_total",
    "counter",
    "Answered HTTP requests; 499 counts clients that went away first.",
    ("route", "method", "status"),
)
HTTP_SECONDS = Metric(
    "smg_node_http_request_duration_seconds",
    "histogram",
    "From the head of a request to the last byte of its answer.",
    ("route",),
    _SECONDS,
)
HTTP_REFUSED = Metric(
    "smg_node_http_connections_refused_total",
    "counter",
    "Connections turned away or cut by a limit of the server.",
    ("reason",),
)
TLS_HANDSHAKES = Metric(
    "smg_node_tls_handshakes_total",
    "counter",
    "TLS handshakes of clients that are over: ok, failed, timeout, gone, plain_http (no TLS at all), refused (too many"
    " at once).",
    ("outcome",),
)
TLS_RELOADS = Metric(
    "smg_node_tls_reloads_total", "counter", "Times that the listeners' certificates were renewed."
)
TLS_RELOAD_FAILURES = Metric(
    "smg_node_tls_reload_failures_total",
    "counter",
    "Times that changed certificate files of the listeners would not do, and the old ones stayed.",
)
TLS_EXPIRES = Metric(
    "smg_node_tls_certificate_expires_seconds",
    "gauge",
    "How long a certificate of the listeners is still valid.",
    ("pair",),
    merge="min",
    pulled=True,
)
TENANT_REQUESTS = Metric(
    "smg_node_tenant_http_requests_total",
    "counter",
    "Answered HTTP requests that came with a tenant's key; tenants after the first 1,000 are `other`.",
    ("tenant", "status"),
)
HTTP_INFLIGHT = Metric(
    "smg_node_http_requests_inflight", "gauge", "HTTP requests being answered now.", pulled=True
)
HTTP_CONNECTIONS = Metric(
    "smg_node_http_connections", "gauge", "Open client connections.", pulled=True
)
HTTP_SOCKETS = Metric(
    "smg_node_http_sockets", "gauge", "WebSockets that are open.", ("route",), pulled=True
)

GENERATIONS = Metric(
    "smg_node_generations_total",
    "counter",
    "Finished generations, a request that runs tools of this side as one. `outcome` is ok, client_gone, refused or failed;"
    " `code` the error's code.",
    ("dialect", "model", "outcome", "code"),
)
GENERATION_SECONDS = Metric(
    "smg_node_generation_duration_seconds",
    "histogram",
    "From the request to the end of its generation.",
    ("model",),
    _SECONDS,
)
TTFT_SECONDS = Metric(
    "smg_node_time_to_first_token_seconds",
    "histogram",
    "From the request to its first token.",
    ("model",),
    _SECONDS,
)
TPOT_SECONDS = Metric(
    "smg_node_time_per_output_token_seconds",
    "histogram",
    "Mean time per token after the first, one observation a generation.",
    ("model",),
    _TOKEN_SECONDS,
)
PROMPT_TOKENS = Metric(
    "smg_node_prompt_tokens_total",
    "counter",
    "Tokens of prompts, cached ones included.",
    ("model",),
)
CACHED_TOKENS = Metric(
    "smg_node_prompt_tokens_cached_total",
    "counter",
    "Tokens of prompts that the engine found in its cache.",
    ("model",),
)
COMPLETION_TOKENS = Metric(
    "smg_node_completion_tokens_total", "counter", "Generated tokens.", ("model",)
)
CONTINUATIONS = Metric(
    "smg_node_continuations_total",
    "counter",
    "Answers that had begun when their worker was lost, and went on at another one.",
    ("model",),
)
ODDITIES = Metric(
    "smg_node_answer_oddities_total",
    "counter",
    "What models printed against their own format, by what it was: markup of a call that was none, a closer"
    " without an opener, a parameter printed twice, a value or a number of calls over the limits; a call or JSON"
    " that was demanded of an engine without grammars and did not come.",
    ("model", "what"),
)
IGNORED_PARAMETERS = Metric(
    "smg_node_ignored_parameters_total",
    "counter",
    "Request parameters without effect, by name; the first 100 names, then `other`.",
    ("parameter",),
)
JOINED_EVENTS = Metric(
    "smg_node_stream_joined_events_total",
    "counter",
    "Events of streams that went out as part of the one before them, because of `stream.coalesce_ms`.",
)
ENGINE_ERRORS = Metric(
    "smg_node_engine_errors_total",
    "counter",
    "Failed calls to engines, by contract and gRPC status.",
    ("contract", "status"),
)

TOKEN_CACHE_HITS = Metric(
    "smg_node_token_cache_hits_total",
    "counter",
    "Prompts (l0) or prefixes (l1) whose ids were remembered.",
    ("cache",),
    pulled=True,
)
TOKEN_CACHE_MISSES = Metric(
    "smg_node_token_cache_misses_total",
    "counter",
    "Prompts (l0) or prefixes (l1) that had to be encoded.",
    ("cache",),
    pulled=True,
)
TOKEN_CACHE_BYTES = Metric(
    "smg_node_token_cache_bytes", "gauge", "Bytes held by a token cache.", ("cache",), pulled=True
)
TOKEN_CACHE_ENTRIES = Metric(
    "smg_node_token_cache_entries", "gauge", "Entries of a token cache.", ("cache",), pulled=True
)
WORKERS = Metric(
    "smg_node_workers", "gauge", "Workers by status.", ("status",), pulled=True, merge="control"
)
WORKERS_READY = Metric(
    "smg_node_workers_ready",
    "gauge",
    "Workers that may be given work now, by the part they play: regular, prefill or decode.",
    ("role",),
    pulled=True,
    merge="control",
)
WORKER_INFLIGHT = Metric(
    "smg_node_worker_inflight",
    "gauge",
    "Requests this node has open at a worker.",
    ("worker",),
    pulled=True,
)

JOURNEYS = Metric(
    "smg_node_journeys",
    "gauge",
    "Requests whose way through the cluster this node can tell, those under way too.",
    pulled=True,
)
JOURNEYS_BYTES = Metric(
    "smg_node_journeys_bytes", "gauge", "Bytes held to tell of requests that ended.", pulled=True
)

LOOP_LAG_SECONDS = Metric(
    "smg_node_loop_lag_seconds",
    "histogram",
    "How late a timer of the event loop fired; sampled ten times a second.",
    (),
    _LAG_SECONDS,
)
LOOP_STALLS = Metric(
    "smg_node_loop_stalls_total", "counter", "Times the event loop was late by over 100 ms."
)
GC_PAUSE_SECONDS = Metric(
    "smg_node_gc_pause_seconds_total",
    "counter",
    "Time that everything stood still while Python looked for unused objects.",
    ("generation",),
    pulled=True,
)
LOG_LINES_DROPPED = Metric(
    "smg_node_log_lines_dropped_total",
    "counter",
    "Log lines lost because whoever reads them is too slow.",
    pulled=True,
)
SCRAPE_ERRORS = Metric(
    "smg_node_scrape_errors_total",
    "counter",
    "Pulled metrics that could not be read.",
    ("metric",),
)

METRICS: Final[tuple[Metric, ...]] = (
    BUILD,
    HTTP_REQUESTS,
    HTTP_SECONDS,
    HTTP_REFUSED,
    TLS_HANDSHAKES,
    TLS_RELOADS,
    TLS_RELOAD_FAILURES,
    TLS_EXPIRES,
    TENANT_REQUESTS,
    HTTP_INFLIGHT,
    HTTP_CONNECTIONS,
    HTTP_SOCKETS,
    GENERATIONS,
    GENERATION_SECONDS,
    TTFT_SECONDS,
    TPOT_SECONDS,
    PROMPT_TOKENS,
    CACHED_TOKENS,
    COMPLETION_TOKENS,
    CONTINUATIONS,
    ODDITIES,
    IGNORED_PARAMETERS,
    JOINED_EVENTS,
    ENGINE_ERRORS,
    TOKEN_CACHE_HITS,
    TOKEN_CACHE_MISSES,
    TOKEN_CACHE_BYTES,
    TOKEN_CACHE_ENTRIES,
    WORKERS,
    WORKERS_READY,
    WORKER_INFLIGHT,
    JOURNEYS,
    JOURNEYS_BYTES,
    *RESILIENCE_METRICS,
    *PROVIDER_METRICS,
    *ISSUER_METRICS,
    *MCP_METRICS,
    *DISCOVERY_METRICS,
    *MEDIA_METRICS,
    *LIMIT_METRICS,
    *USAGE_METRICS,
    *PROCESS_METRICS,
    *KV_METRICS,
    *HINT_METRICS,
    *RIGHTS_METRICS,
    *MESH_METRICS,
    *STATE_METRICS,
    *STORE_METRICS,
    *RUN_METRICS,
    LOOP_LAG_SECONDS,
    LOOP_STALLS,
    GC_PAUSE_SECONDS,
    LOG_LINES_DROPPED,
    SCRAPE_ERRORS,
)
