"""Member views: the table of members and the rows of events, as `smg-admin cluster` prints them."""

import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.admin.views.output import draw_table, format_span
from smg_node.system_clock import SystemClock

# Narrower terminals do without the HTTP addresses: a line that is folded is hard to read.
_WIDE_COLUMNS: Final = 100
_HASH_SHOWN: Final = 8
_LIVING: Final = ("alive", "suspect")


def draw_members(rows: list[dict[str, Any]]) -> str:
    """Return the table of members; versions only where there are several, for then they matter.

    The hash is of the cluster's settings as that member follows them: equal soon after a change.
    """
    now_ms = SystemClock().now_ms()
    columns: dict[str, Callable[[Mapping[str, Any]], object]] = {
        "NAME": lambda row: row["name"],
        "STATE": lambda row: row["state"],
        "FOR": lambda row: format_span((now_ms - row["since_ms"]) / 1000),
        "ADDRESS": lambda row: row["address"],
        "HTTP": lambda row: row["meta"].get("http"),
        "VERSION": lambda row: row["meta"].get("version"),
        "RTT MS": lambda row: row["rtt_ms"],
        "HEARD": lambda row: None if row["lag_ms"] is None else _ago(row["lag_ms"] / 1000),
        "CONFIG": lambda row: _hash(row)[:_HASH_SHOWN],
        "NOTE": _notes,
    }
    if sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE_COLUMNS:
        del columns["HTTP"]
    if not any(map(_hash, rows)):
        del columns["CONFIG"]
    if len({row["meta"].get("version") for row in rows if row["state"] in _LIVING}) < 2:
        del columns["VERSION"]
    cells = [[read(row) for read in columns.values()] for row in rows]
    return draw_table(list(columns), cells, empty="There are no members.")


def _hash(row: Mapping[str, Any]) -> str:
    """The hash of the settings that a living member follows; empty where it says nothing."""
    return str(row.get("config_hash", "")) if row["state"] in _LIVING else ""


def _notes(row: Mapping[str, Any]) -> list[str]:
    meta, state = row["meta"], row["state"]
    return [
        *(["this node"] if row["me"] else []),
        *([word for word in ("leaving", "draining") if meta.get(word) and state in _LIVING]),
        *(["watched before it counts"] if state == "alive" and not row["announced"] else []),
        *([f"doubted by {row['accuser']}"] if state == "suspect" and row["accuser"] else []),
    ]


def _ago(seconds: float) -> str:
    """A silence; tenths count where a probe interval is a fraction of a second."""
    return f"{seconds:.1f}s ago" if seconds < 10 else f"{format_span(seconds)} ago"


def event_row(event: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of one event of the cluster."""
    from datetime import datetime

    moment = datetime.fromtimestamp(event["time_ms"] / 1000).astimezone()
    return (
        event["id"],
        moment.isoformat(sep=" ", timespec="milliseconds"),
        event["kind"],
        event["name"],
        ", ".join(f"{name}={value}" for name, value in event["detail"].items()),
    )
