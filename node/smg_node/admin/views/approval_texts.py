"""Approval texts: runs that wait for an operator's word, as rows and facts for people."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.admin.views.output import draw_facts, format_span, plain_lines
from smg_node.admin.views.value_text import format_time

APPROVAL_COLUMNS: Final = ("ID", "NODE", "SINCE", "FOR", "TENANT", "RUN", "ARGUMENTS")
_ARGUMENTS_MAX: Final = 80


def approval_row(run: Mapping[str, Any]) -> Sequence[object]:
    """Return one run as a row of `APPROVAL_COLUMNS`."""
    arguments = plain_lines(" ".join(run["arguments"].split()))
    if run["cut"] or len(arguments) > _ARGUMENTS_MAX:
        arguments = arguments[: _ARGUMENTS_MAX - 1] + "…"
    return (
        run["id"],
        run["node"],
        format_time(run["since_ms"]),
        format_span((run["until_ms"] - run["since_ms"]) / 1000),
        run["tenant"] or "-",
        plain_lines(f"{run['server']}/{run['tool']}"),
        arguments,
    )


def draw_approval(run: Mapping[str, Any]) -> str:
    """Return one run as facts, and its arguments below: a model's words must not steer the terminal."""
    facts = draw_facts(
        [
            ("id", run["id"]),
            ("run", plain_lines(f"{run['server']}/{run['tool']}")),
            ("node", run["node"]),
            ("model", plain_lines(run["model"])),
            ("tenant", run["tenant"] or "-"),
            ("key", run["key_id"] or "-"),
            ("request", plain_lines(run["request_id"])),
            ("since", format_time(run["since_ms"])),
            ("until", format_time(run["until_ms"])),
        ]
    )
    cut = "\n… (the rest is too long to be shown)" if run["cut"] else ""
    return f"{facts}\n\n{plain_lines(run['arguments'])}{cut}"
