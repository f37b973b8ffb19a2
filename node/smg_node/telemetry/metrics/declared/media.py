"""Media metrics: pictures on their way to engines, the time they take, and what is kept of them."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

MEDIA_ITEMS = Metric(
    "smg_node_media_items_total",
    "counter",
    "Pictures handed to engines by the way: `tensors` made here, `references` or `encoded` files that the engine works on.",
    ("way",),
)
MEDIA_BYTES = Metric(
    "smg_node_media_bytes_total",
    "counter",
    "Bytes of the files of pictures by where they came from: `data` in the request, or `url`.",
    ("source",),
)
MEDIA_SECONDS = Metric(
    "smg_node_media_seconds",
    "histogram",
    "Time of one picture by stage: `fetch`, `plan` (its header, size and digest), `decode`, `patches` (resized and put in"
    " the model's order); and of all of a request: `finish` (as the chosen engine wants them).",
    ("stage",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
MEDIA_CACHE = Metric(
    "smg_node_media_cache_total",
    "counter",
    "Pictures by whether their patches were kept: `hit`, `shared` (being made for another request), `miss`.",
    ("outcome",),
)
MEDIA_REFUSALS = Metric(
    "smg_node_media_refusals_total",
    "counter",
    "Requests refused for their pictures, by the code of the error.",
    ("reason",),
)
MEDIA_UNDER_WAY = Metric(
    "smg_node_media_under_way",
    "gauge",
    "Pictures that are being made, or wait for a thread.",
    pulled=True,
)
MEDIA_INFLIGHT_BYTES = Metric(
    "smg_node_media_inflight_bytes",
    "gauge",
    "Memory that the pictures of requests under way take, of at most `media.inflight_bytes`.",
    pulled=True,
)
MEDIA_CACHE_BYTES = Metric(
    "smg_node_media_cache_bytes",
    "gauge",
    "Patches that are kept for pictures that come again, of at most `media.cache_bytes`.",
    pulled=True,
)
ENCODE_ITEMS = Metric(
    "smg_node_encode_items_total",
    "counter",
    "Pictures that engines of their own were asked to encode for others: `ok` (accepted), `failed`, `cancelled`.",
    ("outcome",),
)
ENCODE_SECONDS = Metric(
    "smg_node_encode_seconds",
    "histogram",
    "Time until such an engine had accepted a picture, or encoded it where it says so, by how that went.",
    ("outcome",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
MEDIA_METRICS: Final = (
    ENCODE_ITEMS,
    ENCODE_SECONDS,
    MEDIA_ITEMS,
    MEDIA_BYTES,
    MEDIA_SECONDS,
    MEDIA_CACHE,
    MEDIA_REFUSALS,
    MEDIA_UNDER_WAY,
    MEDIA_INFLIGHT_BYTES,
    MEDIA_CACHE_BYTES,
)
"""All of them."""
