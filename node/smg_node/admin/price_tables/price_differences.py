"""Price differences: what a published table says otherwise than the prices that are set. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias

from smg_node.admin.price_tables.price_row import NamedModel, PriceRow, PriceTable
from smg_node.admin.views.price_texts import short_price

Change: TypeAlias = Literal["new", "changed", "same", "not there"]


class Difference(NamedTuple):
    """One name: what is set now, and what the table's row would make of it; `price` is None where it has no row."""

    name: str
    change: Change
    row: str
    before: Mapping[str, Any] | None
    price: Mapping[str, Any] | None
    lost: tuple[str, ...] = ()


def differences(
    table: PriceTable,
    models: Sequence[NamedModel] | None,
    known: Mapping[str, Mapping[str, Any]],
    match: str = "",
) -> Sequence[Difference]:
    """Return the differences for these models at providers, None for all rows of the table under its own names.

    `known` are the prices that are set, by name; `match` is a pattern as for files, "" for every name.
    """
    pairs: Iterator[tuple[str, PriceRow | None]]
    if models is None:
        pairs = ((row.name, row) for row in table.rows())
    else:
        pairs = ((model.to, table.find(model)) for model in models)
    return [
        _difference(name, row, known.get(name))
        for name, row in pairs
        if not match or fnmatchcase(name, match)
    ]


def _difference(name: str, row: PriceRow | None, view: Mapping[str, Any] | None) -> Difference:
    before = None if view is None else view["price"]
    if row is None:
        return Difference(name, "not there", "", before, None)
    change: Change = "new" if before is None else "same" if before == row.price else "changed"
    return Difference(name, change, row.name, before, row.price, row.lost)


def difference_rows(changes: Sequence[Difference]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table for people."""
    for one in changes:
        now = "" if one.before is None else short_price(one.before)
        then = "" if one.price is None or one.change == "same" else short_price(one.price)
        yield one.name, one.change, one.row, now, then
