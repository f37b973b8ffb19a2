"""Usage metrics: failed writes and lost counts of tenants' use; all are read at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

_LABELS: Final = ("tenant", "model")


def _of_tenants(what: str, meaning: str) -> Metric:
    return Metric(f"smg_node_usage_{what}_total", "counter", meaning, _LABELS, pulled=True)


USAGE_REQUESTS = _of_tenants(
    "requests",
    "Requests that are over, however they ended, but for those that were refused; since the start. After 1,000"
    " pairs of a tenant and a model the rest is `(other)`; `(none)` came without a tenant's key.",
)
USAGE_REFUSED = _of_tenants(
    "refused", "Requests that were refused: by a limit, or because something was wrong with them."
)
USAGE_PROMPT_TOKENS = _of_tenants("prompt_tokens", "Tokens of their prompts, cached ones included.")
USAGE_CACHED_TOKENS = _of_tenants("cached_tokens", "Tokens of their prompts that were cached.")
USAGE_COMPLETION_TOKENS = _of_tenants("completion_tokens", "Tokens of their answers.")
USAGE_COST_MICRO = _of_tenants(
    "cost_micro",
    "What they cost by the prices that were set for their models, in millionths of your currency; what runs of tools cost"
    " is of the model `(none)`.",
)
_OF_PROVIDERS: Final = ("provider", "model")
PROVIDER_COST_MICRO = Metric(
    "smg_node_provider_cost_micro_total",
    "counter",
    "What calls of providers cost by what the vendor says, or else by the prices that were set, in millionths of your"
    " currency; since the start. After 1,000 pairs of a provider and a model the rest is `(other)`.",
    _OF_PROVIDERS,
    pulled=True,
)
PROVIDER_TOKENS = Metric(
    "smg_node_provider_tokens_total",
    "counter",
    "Tokens of calls of providers: `new`, `cached` and `written` of prompts, `answer`.",
    (*_OF_PROVIDERS, "kind"),
    pulled=True,
)
PROVIDER_UNPRICED = Metric(
    "smg_node_provider_unpriced_calls_total",
    "counter",
    "Calls of providers whose cost nobody knows, because there is no price.",
    _OF_PROVIDERS,
    pulled=True,
)
PROVIDER_ESTIMATED = Metric(
    "smg_node_provider_estimated_calls_total",
    "counter",
    "Calls of providers that broke off before the vendor said what was used: tokens are those that came.",
    _OF_PROVIDERS,
    pulled=True,
)
USAGE_UNWRITTEN = Metric(
    "smg_node_usage_write_failures_total",
    "counter",
    "Times that what requests used could not be written to disk; it is kept in memory, and tried again.",
    pulled=True,
)
USAGE_LOST = Metric(
    "smg_node_usage_lost_total",
    "counter",
    "Rows of usage that were given up because the disk took nothing for two days.",
    pulled=True,
)

USAGE_METRICS: Final[tuple[Metric, ...]] = (
    USAGE_REQUESTS,
    USAGE_REFUSED,
    USAGE_PROMPT_TOKENS,
    USAGE_CACHED_TOKENS,
    USAGE_COMPLETION_TOKENS,
    USAGE_COST_MICRO,
    PROVIDER_COST_MICRO,
    PROVIDER_TOKENS,
    PROVIDER_UNPRICED,
    PROVIDER_ESTIMATED,
    USAGE_UNWRITTEN,
    USAGE_LOST,
)
