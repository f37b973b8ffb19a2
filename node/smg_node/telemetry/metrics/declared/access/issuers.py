"""Issuer metrics: keys of the issuers of tokens, requests for them, and calls about opaque tokens; read at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

ISSUER_FETCHES = Metric(
    "smg_node_issuer_fetches_total",
    "counter",
    "Requests of this node for an issuer's keys, by how they ended: `ok` or `failed`. One node asks for the cluster.",
    ("issuer", "outcome"),
    pulled=True,
    merge="control",
)
ISSUER_KEYS = Metric(
    "smg_node_issuer_keys",
    "gauge",
    "Keys that an issuer's tokens may be signed with; 0 while none count.",
    ("issuer",),
    pulled=True,
    merge="control",
)
ISSUER_KEYS_SKIPPED = Metric(
    "smg_node_issuer_keys_skipped",
    "gauge",
    "Keys of an issuer's set that are not used, by why.",
    ("issuer", "reason"),
    pulled=True,
    merge="control",
)
ISSUER_KEYS_AGE = Metric(
    "smg_node_issuer_keys_age_seconds",
    "gauge",
    "Since when an issuer's keys were not fetched again, by any node. They are good for `keys_max_age_s`.",
    ("issuer",),
    pulled=True,
    merge="control",
)
INTROSPECTIONS = Metric(
    "smg_node_issuer_introspections_total",
    "counter",
    "Calls about opaque tokens, by how they ended: `ok` or `failed`.",
    ("outcome",),
    pulled=True,
)
DENIALS = Metric(
    "smg_node_issuer_denials",
    "gauge",
    "Subjects whose tokens are refused, those whose time is over too.",
    pulled=True,
    merge="control",
)

ISSUER_METRICS: Final = (
    ISSUER_FETCHES,
    ISSUER_KEYS,
    ISSUER_KEYS_SKIPPED,
    ISSUER_KEYS_AGE,
    INTROSPECTIONS,
    DENIALS,
)
