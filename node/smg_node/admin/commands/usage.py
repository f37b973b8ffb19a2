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
_TOTAL: Final = "TOTAL"

Tenant = Annotated[str, typer.Option(metavar="NAME", help="Only of this tenant.")]
Model = Annotated[str, typer.Option(metavar="NAME", help="Only of this model.")]
KeyId = Annotated[str, typer.Option(metavar="ID", help="Only of this API key.")]
Since = Annotated[
    str,
    typer.Option(metavar="WHEN", help="24h, 7d, 2026-11-01 or 2026-11-01T12:00Z; whole UTC hours."),
]
Until = Annotated[str, typer.Option(metavar="WHEN", help="Up to then, instead of now.")]
By = Annotated[
    str, typer.Option(metavar="WHAT", help="Rows apart by any of hour, day, tenant, key, model.")
]


def usage(
    context: typer.Context,
    tenant: Tenant = "",
    model: Model = "",
    key_id: KeyId = "",
    since: Since = "24h",
    until: Until = "",
    by: By = "tenant,model",
) -> None:
    """Show what requests used: how many, their tokens, and their cost by the models' prices.

    \b
    smg-admin usage --since 7d --by day,tenant
    smg-admin usage --tenant acme --since 2026-11-01 --until 2026-12-01 --json
    """
    options = options_of(context)
    asked = {
        "tenant": tenant,
        "model": model,
        "key": key_id,
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
    columns = (*map(str.upper, names), *_COUNTS.values(), "COST")
    print_table(columns, _rows(answer), empty="Nothing was used.")
    for line in _notes(answer):
        tell(line)


def _rows(answer: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    names: Sequence[str] = answer["by"]
    rows: Sequence[Mapping[str, Any]] = answer["rows"]
    for row in rows:
        yield (*(row[name] for name in names), *_counts(row))
    if len(rows) > 1:
        yield (_TOTAL, *[""] * (len(names) - 1), *_counts(answer["total"]))


def _counts(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (*(row[name] for name in _COUNTS), f"{Decimal(row['cost_micro']) / _MILLION:f}")


def _notes(answer: Mapping[str, Any]) -> Iterator[str]:
    for name, why in sorted(answer["silent"].items()):
        yield f"NOT exact: {name} is not counted: {why}"
    if answer["cut"]:
        yield f"{answer['cut']} rows were too many, and are one"
