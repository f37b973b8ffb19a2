"""A cluster as its nodes tell of it: what `smg-admin top` reads, for as many moments as a test wants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from smg_node.telemetry.metrics.cluster_metrics import WATCHED

BOUNDS: Final = {metric.name: metric.buckets for metric in WATCHED if metric.buckets}
Rows = dict[str, dict[tuple[str, ...], list[float]]]


@dataclass
class ToldNode:
    """One node. `count` adds to a counter, `set` sets a gauge, `took` observes."""

    name: str
    at_s: float = 100.0
    state: str = "alive"
    silent: str = ""
    ready: bool = True
    draining: bool = False
    reasons: Sequence[str] = ()
    cut: int = 0
    rows: Rows = field(default_factory=dict)

    def count(self, name: str, labels: Sequence[str], more: float) -> None:
        values = self.rows.setdefault(name, {}).setdefault(tuple(labels), [0.0])
        values[0] += more

    def set(self, name: str, labels: Sequence[str], value: float) -> None:
        self.rows.setdefault(name, {})[tuple(labels)] = [value]

    def took(self, name: str, labels: Sequence[str], *seconds: float) -> None:
        bounds = BOUNDS[name]
        values = self.rows.setdefault(name, {}).setdefault(tuple(labels), [0.0] * (len(bounds) + 2))
        for one in seconds:
            for at, bound in enumerate((*bounds, float("inf"))):
                values[at] += one <= bound
            values[-1] += one

    def begin_anew(self) -> None:
        self.rows = {}

    def said(self) -> Mapping[str, Any]:
        who = {
            "name": self.name,
            "state": self.state,
            "me": False,
            "http": f"{self.name}.example:30000",
            "version": "1.0",
            "silent": self.silent,
        }
        if self.silent:
            return who
        return {
            **who,
            "at_s": self.at_s,
            "ready": self.ready,
            "draining": self.draining,
            "reasons": list(self.reasons),
            "degraded": [],
            "cut": self.cut,
            "rows": {
                name: [
                    {"labels": list(labels), "values": list(values)}
                    for labels, values in series.items()
                ]
                for name, series in self.rows.items()
            },
        }


class ToldCluster:
    """All of them; the first one is asked."""

    def __init__(self, *names: str) -> None:
        self.nodes = {name: ToldNode(name) for name in names}
        self.asked = names[0]

    def __getitem__(self, name: str) -> ToldNode:
        return self.nodes[name]

    def pass_s(self, seconds: float) -> None:
        for node in self.nodes.values():
            node.at_s += seconds

    def said(self) -> Mapping[str, Any]:
        return {
            "node": self.asked,
            "metrics": {
                metric.name: {
                    "kind": metric.kind,
                    "labels": list(metric.labels),
                    "buckets": list(metric.buckets),
                    "meaning": metric.meaning,
                }
                for metric in WATCHED
            },
            "nodes": [node.said() for node in self.nodes.values()],
        }


def worker(url: str, status: str = "ready", model: str = "llama") -> Mapping[str, Any]:
    return {"url": url, "model": model, "status": status, "role": "regular"}


def use(key: str, amount: int, spent: int, **more: Any) -> Mapping[str, Any]:
    unit, _, window = key.rpartition("#")[2].partition("/")
    return {
        "key": key,
        "unit": unit,
        "window_ms": int(window or 0),
        "amount": amount,
        "spent": spent,
        "left": amount - spent,
        "state": "exact",
        "ends_ms": 1_000,
        **more,
    }


def work(
    node: ToldNode, model: str, tenant: str, *, ttft_s: Sequence[float], failed: int = 0
) -> None:
    """Let a node serve one request for each of these times, 100 tokens of prompt and 20 of answer each."""
    served = len(ttft_s)
    node.count("smg_node_generations_total", ("chat", model, "ok", ""), served)
    node.count("smg_node_generations_total", ("chat", model, "failed", "engine"), failed)
    node.took("smg_node_time_to_first_token_seconds", (model,), *ttft_s)
    node.took("smg_node_time_per_output_token_seconds", (model,), *[0.02] * served)
    for name, tokens in (("prompt", 100), ("completion", 20)):
        node.count(f"smg_node_{name}_tokens_total", (model,), tokens * served)
        node.count(f"smg_node_usage_{name}_tokens_total", (tenant, model), tokens * served)
    node.count("smg_node_prompt_tokens_cached_total", (model,), 40 * served)
    node.count("smg_node_usage_cached_tokens_total", (tenant, model), 40 * served)
    node.count("smg_node_usage_requests_total", (tenant, model), served)
    node.count("process_cpu_seconds_total", (), 0.1 * served)
