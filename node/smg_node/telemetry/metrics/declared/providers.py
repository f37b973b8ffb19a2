"""Provider metrics: calls of vendors by outcome, and keys and providers that are left alone; all are read at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

PROVIDER_CALLS = Metric(
    "smg_node_provider_calls_total",
    "counter",
    "Calls that a vendor answered: `answered`, or the class of its refusal, as `rate`, `full`, `not_let_in`. An answer that"
    " breaks later counts in both. Providers after the first 1,000 are `(other)`.",
    ("provider", "outcome"),
    pulled=True,
)
PROVIDER_KEYS_RESTING = Metric(
    "smg_node_provider_keys_resting",
    "gauge",
    "Keys of a provider that are left alone for now, because its vendor refused them or they have nothing left.",
    ("provider",),
    pulled=True,
    merge="max",
)
PROVIDER_OFF_SECONDS = Metric(
    "smg_node_provider_off_seconds",
    "gauge",
    "For how long no key of a provider may be used yet, 0 if one may be now.",
    ("provider",),
    pulled=True,
    merge="max",
)
PROVIDER_CACHE_READ_TOKENS = Metric(
    "smg_node_provider_cache_read_tokens_total",
    "counter",
    "Tokens of prompts that a vendor read from its cache, as its answers tell. Providers after the first 1,000 are"
    " `(other)`, here and in the next two.",
    ("provider",),
    pulled=True,
)
PROVIDER_CACHE_WRITTEN_TOKENS = Metric(
    "smg_node_provider_cache_written_tokens_total",
    "counter",
    "Tokens of prompts that a vendor wrote to its cache, as its answers tell; many vendors do not.",
    ("provider",),
    pulled=True,
)
PROVIDER_CACHE_EXPECTED_TOKENS = Metric(
    "smg_node_provider_cache_expected_tokens_total",
    "counter",
    "Tokens of prompts that this node expected a vendor to read from its cache, where a route chooses by that. Far above"
    " what was read, the vendor forgets sooner than it says, or clients change their prompts' beginnings.",
    ("provider",),
    pulled=True,
)
SPLIT_REQUESTS = Metric(
    "smg_node_route_split_requests_total",
    "counter",
    "Requests of a route with a split, by the side they are on, `NAME/in` or `NAME/out`, and how they ended.",
    ("model", "split", "outcome"),
)
SHADOW_REQUESTS = Metric(
    "smg_node_route_shadow_requests_total",
    "counter",
    "Copies of requests at a route's shadow: answered, failed, over_budget, dropped (too much was waiting), or cut (the"
    " process ended).",
    ("model", "outcome"),
    pulled=True,
)
SHADOW_CALLS = Metric(
    "smg_node_route_shadow_calls_total",
    "counter",
    "Copies where the answer or its copy calls tools: `equal` by name and arguments, or `different`.",
    ("model", "calls"),
    pulled=True,
)
PROVIDER_METRICS: Final = (
    SHADOW_REQUESTS,
    SHADOW_CALLS,
    PROVIDER_CALLS,
    PROVIDER_KEYS_RESTING,
    PROVIDER_OFF_SECONDS,
    PROVIDER_CACHE_READ_TOKENS,
    PROVIDER_CACHE_WRITTEN_TOKENS,
    PROVIDER_CACHE_EXPECTED_TOKENS,
    SPLIT_REQUESTS,
)
