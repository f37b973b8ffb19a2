"""Table layout for a narrow terminal: drops columns by rank first, then cuts names, never numbers.
Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from smg_node.admin.top.terminal_lines import Line, Span, Style, fitted, joined, printable, width_of

Row = TypeVar("Row")
Shown = TypeVar("Shown", contravariant=True)
Key: TypeAlias = str | float | None

GAP: Final = 2
"""Columns between two columns, as `joined` has them."""
NAME_MIN: Final = 8
"""So much of a name is there before any other column goes, if nothing else is said; with the ellipsis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Shown]):
    """One column. `by` is what rows are sorted by: names up, numbers down; `say` writes it.

    `rank` is 0 for what is always there; the highest goes first. `name` is text that may be cut, to `least` columns
    while there is something else that can go.
    """

    title: str
    by: Callable[[Shown], Key]
    say: Callable[[Any], str] = str
    rank: int = 0
    name: bool = False
    least: int = NAME_MIN
    style: Callable[[Shown], Style] = lambda row: ""

    def cell(self, row: Shown) -> str:
        """Return what stands in a row."""
        value = self.by(row)
        return "-" if value is None and self.name else printable(self.say(value))


def ordered(
    columns: Sequence[Column[Row]], rows: Sequence[Row], sort: str, *, turned: bool
) -> list[Row]:
    """Return the rows by the column of that title; of equal ones as they were. What is not known comes last."""
    column = next((one for one in columns if one.title == sort), columns[0])
    known = [row for row in rows if column.by(row) is not None]
    unknown = [row for row in rows if column.by(row) is None]
    known.sort(key=lambda row: _key(column.by(row)), reverse=turned != (not column.name))
    return known + unknown


def _key(value: Key) -> tuple[str, float]:
    return (value.casefold(), 0.0) if isinstance(value, str) else ("", value or 0.0)


def laid_out(
    columns: Sequence[Column[Row]], rows: Sequence[Row], width: int, sort: str
) -> list[Line]:
    """Return the head and a line for each row, none of them wider than `width`; the sorted column is marked."""
    cells = {one.title: [one.cell(row) for row in rows] for one in columns}
    wide = {one.title: max(map(width_of, (one.title, *cells[one.title]))) for one in columns}
    kept = list(columns)
    while _least(kept, wide) > width and any(one.rank for one in kept):
        kept.remove(max(kept, key=lambda one: one.rank))
    room = width - sum(wide[one.title] for one in kept) - GAP * (len(kept) - 1)
    for one in sorted(kept, key=lambda one: -wide[one.title]):
        if room < 0 and one.name:
            narrower = max(min(NAME_MIN, wide[one.title]), wide[one.title] + room)
            room += wide[one.title] - narrower
            wide[one.title] = narrower
    head = [
        Span(_filled(one.title, wide, one), "chosen" if one.title == sort else "bold")
        for one in kept
    ]
    lines: list[Line] = [joined(head)]
    for at, row in enumerate(rows):
        lines.append(
            joined(Span(_filled(cells[one.title][at], wide, one), one.style(row)) for one in kept)
        )
    return lines


def _least(columns: Sequence[Column[Row]], wide: dict[str, int]) -> int:
    """Return how narrow a table of these columns can be."""
    needed = sum(
        min(one.least, wide[one.title]) if one.name else wide[one.title] for one in columns
    )
    return needed + GAP * (len(columns) - 1)


def _filled(text: str, wide: dict[str, int], column: Column[Row]) -> str:
    return fitted(text, wide[column.title], right=not column.name)
