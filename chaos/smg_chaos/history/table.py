"""Table of the results of `smg-chaos history`: plain text that can be pasted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_CELLS: Final = (
    "store",
    "answers",
    "clients",
    "stored/s",
    "p50 ms",
    "added p50 ms (rounds)",
    "p99 ms",
    "added p99 ms (rounds)",
    "node us",
    "added node us (rounds)",
    "server us",
)


def told(figures: Mapping[str, Any]) -> str:
    """Return all tables, and a description of the machine."""
    machine = figures["machine"]
    load = ", ".join(f"{one:.2f}" for one in machine["load_average"])
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, Python "
        f"{machine['python']}, nice {machine['nice']}; load average {load} at the start",
    ]
    if figures["cells"]:
        lines += ["", "A response with store:true beside one with store:false, on the same node"]
        lines += aligned([_CELLS, *map(_cell, figures["cells"])])
        lines += [
            "p50, p99 and node (CPU) are those of store:false; what storing adds is the median of the rounds' "
            "differences, with the least and the most.",
            "server: CPU of PostgreSQL or Redis per stored response. Latency is to the answer's last byte, with "
            "so many clients that ask without a pause.",
        ]
    if figures["calls"]:
        lines += ["", "Statements or commands of an operation, and microseconds of one alone"]
        lines += aligned(_calls(figures["calls"]))
    if figures["rate"]:
        lines += ["", _rate(figures["rate"])]
    return "\n".join(lines) + "\n"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines of columns, the first of them to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cell(row: Mapping[str, Any]) -> Sequence[str]:
    return (
        row["store"],
        "streamed" if row["streamed"] else "whole",
        str(row["clients"]),
        f"{row['stored_per_s']:.0f}",
        f"{row['plain_p50_ms']:.2f}",
        _spread(row["added_p50_ms"], 2),
        f"{row['plain_p99_ms']:.2f}",
        _spread(row["added_p99_ms"], 2),
        f"{row['plain_node_us']:.0f}",
        _spread(row["added_node_us"], 0),
        f"{row['server_us']:.0f}" if row["server_us"] else "-",
    )


def _spread(figure: Mapping[str, float], digits: int) -> str:
    middle, least, most = (f"{figure[name]:.{digits}f}" for name in ("median", "least", "most"))
    return f"{middle} ({least} to {most})"


def _calls(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[str]]:
    stores = list(dict.fromkeys(row["store"] for row in rows))
    found = {(row["store"], row["operation"]): row for row in rows}
    lines: list[Sequence[str]] = [("operation", *stores)]
    for name in dict.fromkeys(row["operation"] for row in rows):
        cells = [found[(store, name)] for store in stores]
        lines.append((name, *(_call(cell) for cell in cells)))
    return lines


def _call(row: Mapping[str, Any]) -> str:
    us = f"{row['us']:.0f} us"
    return us if row["calls"] is None else f"{row['calls']} / {us}"


def _rate(row: Mapping[str, Any]) -> str:
    return (
        f"SQLite, {row['wanted_per_s']:.0f} turns a second wanted for {row['seconds']:.1f} s: "
        f"{row['per_s']:.0f} a second ({row['turns']} turns, {row['held_back']} held back); from due to durable "
        f"p50 {row['p50_ms']:.2f} ms, p99 {row['p99_ms']:.2f} ms, worst {row['worst_ms']:.1f} ms; "
        f"CPU {row['us']:.0f} us a turn"
    )
