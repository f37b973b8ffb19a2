"""Cluster metrics route: metrics of every node in one answer, the source of `smg-admin top`."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from smg_node.config.schema.suggestions import did_you_mean
from smg_node.core.errors import invalid
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.ports.cluster_metrics import MetricsService
from smg_node.http.ports.node import Cluster, MemberRow
from smg_node.http.query_bounds import METRIC_NAMES_MAX
from smg_node.telemetry.metrics.cluster_metrics import KNOWN, WATCHED

_TEXT_CHARACTERS_MAX: Final = 16_384
_LIVING: Final = ("alive", "suspect")


class NumberRoutes:
    """Serves the metrics of all nodes."""

    def __init__(self, node: str, desk: MetricsService, cluster: Cluster) -> None:
        self._node = node
        self._desk = desk
        self._cluster = cluster

    async def numbers(self, request: HttpRequest) -> Reply:
        """Show the metrics in `?names=`, separated by commas, or an operator's default set, of
        every node.
        """
        names = _names(request.query.get("names"))
        members = self._cluster.members()
        said = await self._desk.numbers(names)
        nodes = []
        for row in sorted(members, key=lambda row: row.name):
            shown = _member(row)
            numbers = said.nodes.get(row.name)
            if numbers is None:
                gone = "" if row.state in _LIVING else f"it is {row.state}"
                shown["silent"] = said.silent.get(row.name) or gone or "it came just now"
            else:
                shown |= {
                    "version": numbers.version,
                    "at_s": numbers.at_s,
                    "ready": numbers.ready,
                    "draining": numbers.draining,
                    "reasons": numbers.reasons,
                    "degraded": numbers.degraded,
                    "rows": numbers.rows,
                    "cut": numbers.cut,
                }
            nodes.append(shown)
        return json_reply({"node": self._node, "metrics": _declared(names), "nodes": nodes})


def _member(row: MemberRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": row.state,
        "me": row.me,
        "http": str(row.meta.get("http", "")),
        "admin": str(row.meta.get("admin", "")),
        "version": str(row.meta.get("version", "")),
        "silent": "",
    }


def _declared(names: Collection[str]) -> Mapping[str, Any]:
    return {
        name: {
            "kind": KNOWN[name].kind,
            "labels": KNOWN[name].labels,
            "buckets": KNOWN[name].buckets,
            "meaning": KNOWN[name].meaning,
        }
        for name in sorted(names)
    }


def _names(said: str | None) -> Collection[str]:
    """Return the requested metrics; INVALID_REQUEST for an unknown one, none, or too many."""
    if said is None:
        return [metric.name for metric in WATCHED]
    words = [word.strip() for word in said[:_TEXT_CHARACTERS_MAX].split(",")]
    if len(said) > _TEXT_CHARACTERS_MAX or len(words) > METRIC_NAMES_MAX:
        raise invalid(f"names has more than {METRIC_NAMES_MAX} of them", "names")
    names = set(words)
    if "" in names:
        raise invalid("names must be names of metrics, with commas between them", "names")
    for name in sorted(names - KNOWN.keys()):
        hint = did_you_mean(name, KNOWN) or "; deploy/reference/metrics.md lists them"
        raise invalid(f"there is no metric {name[:100]!r}{hint}", "names")
    return sorted(names)
