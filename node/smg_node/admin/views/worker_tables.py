"""Worker tables: workers as rows, and one worker with all its fields."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.admin.options import Options
from smg_node.admin.views.output import print_facts, print_json

WORKER_COLUMNS: Final = (
    "ID",
    "URL",
    "MODEL",
    "CONTRACT",
    "ROLE",
    "RANKS",
    "STATUS",
    "IN FLIGHT",
    "REASON",
)

CLUSTER_COLUMNS: Final = (
    "ID",
    "URL",
    "MODEL",
    "STATUS",
    "UP ON",
    "PROBERS",
    "SOURCES",
    "BY",
    "HERE",
    "ELSEWHERE",
)
# What has a place of its own; what other gateways' clients read says again what stands under a name of ours.
_SAID_TWICE: Final = (
    "busy",
    "details",
    "model_id",
    "worker_type",
    "connection_mode",
    "runtime_type",
    "is_healthy",
    "load",
)


def worker_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of one worker."""
    # A node of an older release says nothing of breakers and ranks.
    passed_over = row.get("breaker", {}).get("why", "")
    reason = row["reason"] if row["status"] != "ready" else passed_over
    fields = ("id", "url", "model", "contract", "role")
    told = (*(row[name] for name in fields), row.get("ranks", 1))
    return (*told, row["status"], row["inflight"], reason)


def cluster_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of each node's verdict on one worker."""
    sights: Mapping[str, Mapping[str, Any]] = row["sights"]
    up = sorted(node for node, sight in sights.items() if sight["up"])
    down = sorted(node for node, sight in sights.items() if not sight["up"])
    seen = ", ".join([*up, *(f"not {node}" for node in down)])
    fields = ("id", "url", "model", "status")
    return (
        *(row[name] for name in fields),
        seen,
        row["probers"],
        row["sources"],
        row["registered_by"],
        row["requests_mine"],
        row["requests_others"],
    )


def print_worker(
    options: Options, view: Mapping[str, Any], cluster: Mapping[str, Any] | None
) -> None:
    """Print one worker, and each node's verdict on it."""
    if options.as_json:
        print_json(view if cluster is None else {**view, "cluster": cluster})
        return
    details: Mapping[str, Any] = view.get("details") or {}
    engine: Mapping[str, Any] = details.get("server") or {}
    print_facts((name, value) for name, value in view.items() if name not in _SAID_TWICE)
    print_facts((name, value) for name, value in details.items() if name != "server")
    if busy := view.get("busy"):
        print("\nHow busy it is:")
        print_facts(busy.items())
    if cluster is not None:
        print("\nWhat the cluster says:")
        print_facts(_cluster_facts(cluster))
    if engine:
        print("\nWhat the engine says:")
        print_facts(sorted(engine.items()))


def _cluster_facts(row: Mapping[str, Any]) -> list[tuple[str, object]]:
    sights: Mapping[str, Mapping[str, Any]] = row["sights"]
    said = [
        (f"on {node}", f"{'up' if sight['up'] else 'down'}{_why(sight)}, {sight['age_ms']} ms ago")
        for node, sight in sorted(sights.items())
    ]
    age_ms = row["load_age_ms"]
    told = "" if age_ms is None else f", told {age_ms} ms ago"
    return [
        ("registered by", row["registered_by"]),
        ("sources", row["sources"]),
        ("probers", row["probers"]),
        *said,
        ("load here", f"{row['requests_mine']} requests, {row['tokens_mine']} tokens"),
        ("elsewhere", f"{row['requests_others']} requests, {row['tokens_others']} tokens{told}"),
    ]


def _why(sight: Mapping[str, Any]) -> str:
    return f" ({sight['reason']})" if sight["reason"] else ""
