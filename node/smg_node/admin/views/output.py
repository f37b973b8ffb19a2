"""Output of `smg-admin`: tables and facts for people, JSON for scripts."""

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
    "alive": "green",
    "suspect": "yellow",
    "dead": "red",
    "left": "dim",
}
_TIME_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def print_json(value: Any) -> None:
    """Print `value` as indented JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under their columns, or the sentence `empty`. None is shown as a dash."""
    print(draw_table(columns, rows, empty=empty))


def draw_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> str:
    """Return what `print_table` prints, in colours if that is for a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = list(rows)
    if not listed:
        return empty
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
    return "\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines())


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print label and value, one a line, the values below each other."""
    text = draw_facts(facts)
    if text:
        print(text)


def draw_facts(facts: Iterable[tuple[str, object]]) -> str:
    """Return what `print_facts` prints."""
    listed = [(label, _cell(value)) for label, value in facts]
    width = max((len(label) for label, _ in listed), default=0)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in listed)


def format_span(seconds: float) -> str:
    """Return a span of time in its two largest units: `4s`, `2m 05s`, `3d 4h`; never negative."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, unit in _TIME_UNITS:
        count, left = divmod(left, size)
        if parts:
            parts.append(f"{count:02}{unit}" if unit in "ms" else f"{count}{unit}")
            break
        if count or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts)


def plain_lines(text: str) -> str:
    """Return a stranger's text of any number of lines, without what would steer the terminal."""
    return "".join(one if one.isprintable() or one in "\n\t" else " " for one in text)


def tell(line: str) -> None:
    """Print a remark to stderr, where it does not disturb what is piped."""
    print(line, file=sys.stderr, flush=True)


def confirmed(question: str) -> bool:
    """Ask somebody at a terminal on stderr, and return whether the answer is yes; anything else is no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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
