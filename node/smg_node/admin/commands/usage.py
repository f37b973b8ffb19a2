"""Usage command, `smg-admin usage`: requests, tokens and cost of tenants, keys and models."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

import typer

from smg_node.admin.options import options_of
from smg_node.admin.views.output import print_json, print_table, tell

_USAGE: Final = ("v1", "cluster", "usage")
_MILLION: Final = 1_000_000
_COUNTS: Final[Mapping[str, str]] = {
    "requests": "REQUESTS",
    "refused": "REFUSED",
    "prompt_tokens": "PROMPT",
    "cached_tokens": "CACHED",
    "completion_tokens": "ANSWER",
}
_OF_VENDORS: Final[Mapping[str, str]] = {"cache_write_tokens": "WRITTEN", "calls": "CALLS"}
_OF_TOOLS: Final[Mapping[str, str]] = {
    "tool_runs": "RUNS",
    "failed_tool_runs": "FAILED",
    "tool_ms": "SECONDS",
    "tool_bytes": "BYTES",
}
_TOTAL: Final = "TOTAL"

Tenant = Annotated[str, typer.Option(metavar="NAME", help="Only of this tenant.")]
Model = Annotated[str, typer.Option(metavar="NAME", help="Only of this model.")]
Provider = Annotated[str, typer.Option(metavar="NAME", help="Only at this provider.")]
Tool = Annotated[str, typer.Option(metavar="SERVER/TOOL", help="Only runs of this tool.")]
Server = Annotated[str, typer.Option(metavar="NAME", help="Only runs of tools of this server.")]
KeyId = Annotated[str, typer.Option(metavar="ID", help="Only of this API key.")]
Since = Annotated[
    str,
    typer.Option(metavar="WHEN", help="24h, 7d, 2026-11-01 or 2026-11-01T12:00Z; whole UTC hours."),
]
Until = Annotated[str, typer.Option(metavar="WHEN", help="Up to then, instead of now.")]
By = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="Rows apart by any of hour, day, tenant, key, model, provider, server, tool.",
    ),
]


def usage(
    context: typer.Context,
    tenant: Tenant = "",
    model: Model = "",
    key_id: KeyId = "",
    provider: Provider = "",
    tool: Tool = "",
    server: Server = "",
    since: Since = "24h",
    until: Until = "",
    by: By = "tenant,model",
) -> None:
    """Show what requests used: how many, their tokens, and what they cost.

    WRITTEN are tokens of prompts that went into a vendor's cache, CALLS those of vendors, which may be more than
    requests: a call that broke off is billed as well. RUNS are those of tools that this cluster ran for models, which are
    no requests; FAILED some of them, SECONDS the time and BYTES the length of their results together.

    \b
    smg-admin usage --since 7d --by day,tenant
    smg-admin usage --by provider,model
    smg-admin usage --by tool,tenant
    smg-admin usage --tenant acme --since 2026-11-01 --until 2026-12-01 --json
    """
    options = options_of(context)
    asked = {
        "tenant": tenant,
        "model": model,
        "key": key_id,
        "provider": provider,
        "tool": tool,
        "server": server,
        "from": since,
        "to": until,
        "by": by,
    }
    query = {name: value for name, value in asked.items() if value}
    answer: Mapping[str, Any] = options.client.ask("GET", *_USAGE, query=query)
    if options.as_json:
        print_json(answer)
        return
    names: Sequence[str] = answer["by"]
    total: Mapping[str, int] = answer["total"]
    shown = {
        **_COUNTS,
        **(_OF_VENDORS if total.get("calls") else {}),
        **(_OF_TOOLS if total.get("tool_runs") else {}),
    }
    columns = (*map(str.upper, names), *shown.values(), "COST")
    print_table(columns, _rows(answer, shown), empty="Nothing was used.")
    for line in _notes(answer):
        tell(line)


def _rows(answer: Mapping[str, Any], shown: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    names: Sequence[str] = answer["by"]
    rows: Sequence[Mapping[str, Any]] = answer["rows"]
    for row in rows:
        yield (*(row[name] for name in names), *_counts(row, shown))
    if len(rows) > 1:
        yield (_TOTAL, *[""] * (len(names) - 1), *_counts(answer["total"], shown))


def _counts(row: Mapping[str, Any], shown: Mapping[str, str]) -> tuple[object, ...]:
    return (*(_count(name, row) for name in shown), f"{Decimal(row['cost_micro']) / _MILLION:f}")


def _count(name: str, row: Mapping[str, Any]) -> object:
    # In seconds it is read; the API has milliseconds, whole numbers like all others.
    return f"{row[name] / 1000:.1f}" if name == "tool_ms" else row[name]


def _notes(answer: Mapping[str, Any]) -> Iterator[str]:
    for name, why in sorted(answer["silent"].items()):
        yield f"NOT exact: {name} is not counted: {why}"
    total = answer["total"]
    if unpriced := total.get("unpriced_calls"):
        yield f"NOT in the cost: {unpriced} calls of models without a price: smg-admin prices list"
    if estimated := total.get("estimated_calls"):
        yield f"{estimated} calls broke off before their vendors said what they used: what came is counted"
    if answer["cut"]:
        yield f"{answer['cut']} rows were too many, and are one"
