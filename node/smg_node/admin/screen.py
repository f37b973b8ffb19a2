"""What an operator sees: tables for eyes, JSON for scripts."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

# Wide enough for any row: piped output is never cut.
_UNLIMITED_COLUMNS: Final = 10_000
_STATUS_STYLES: Final = {
    "ready": "green",
    "pending": "yellow",
    "draining": "yellow",
    "not_ready": "red",
    "failed": "red",
}


def print_json(value: Any) -> None:
    """Print `value` as indented JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under their columns, or the sentence `empty`. None is shown as a dash."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = list(rows)
    if not listed:
        print(empty)
        return
    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        numeric = all(isinstance(row[place], int | float | None) for row in listed)
        table.add_column(
            column, justify="right" if numeric else "left", no_wrap=not terminal, overflow="fold"
        )
    for row in listed:
        table.add_row(
            *(Text(_cell(value), style=_STATUS_STYLES.get(str(value), "")) for value in row)
        )
    console = Console(width=None if terminal else _UNLIMITED_COLUMNS, highlight=False)
    with console.capture() as drawn:
        console.print(table)
    # The last column is padded as well, and a terminal or an editor would show where.
    print("\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines()))


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print label and value, one a line, the values below each other."""
    listed = [(label, _cell(value)) for label, value in facts]
    width = max((len(label) for label, _ in listed), default=0)
    for label, value in listed:
        print(f"{label:<{width}}  {value}")


def tell(line: str) -> None:
    """Say something on the side, where it does not disturb what is piped."""
    print(line, file=sys.stderr, flush=True)


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    if isinstance(value, dict):
        return ", ".join(f"{key}={_cell(inner)}" for key, inner in sorted(value.items())) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value)) or "-"
    # What engines and other operators wrote must not steer the terminal.
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in str(value))
