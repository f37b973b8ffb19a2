"""Config views: settings of the cluster as rows and facts."""

from collections.abc import Mapping
from typing import Any

from smg_node.admin.options import Options
from smg_node.admin.views.output import print_facts, print_json, tell
from smg_node.admin.views.value_text import format_time, format_value


def show_setting(options: Options, view: Mapping[str, Any]) -> None:
    """Print one setting with all fields."""
    if options.as_json:
        print_json(view)
        return
    about: Mapping[str, Any] = view["about"]
    cluster = format_value(view["value"]) if view["is_set"] else "not set"
    facts: list[tuple[str, object]] = [
        ("setting", view["key"]),
        ("effective", f"{format_value(view['effective'])} (from {view['source'] or 'nowhere'})"),
        ("cluster", cluster),
        ("own", format_value(view["own"])),
        ("version", view["version"]),
    ]
    if view["is_set"]:
        facts.append(("set", f"on {view['owner']} at {format_time(view['time_ms'])}"))
    facts += [(name, format_value(about[name])) for name in ("range", "default") if name in about]
    facts += [("meaning", about["help"])] if "help" in about else []
    print_facts(facts)
    warn_of(view)


def warn_of(view: Mapping[str, Any]) -> None:
    """Print warnings about a setting to stderr."""
    if view["ignored"]:
        tell(f"{view['key']} is not followed by this node: {view['ignored']}")
    for rival in view["conflicts"]:
        what = "a removal" if rival["value"] is None else format_value(rival["value"])
        tell(
            f"{view['key']} has a conflict: {what} was written on {rival['owner']} at"
            f" {format_time(rival['time_ms'])} without knowledge of this; setting it again settles it"
        )


def set_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the row of a setting that is set."""
    notes = [
        *(["not followed here: " + row["ignored"]] if row["ignored"] else []),
        *(["in conflict"] if row["conflicts"] else []),
    ]
    return (
        row["key"],
        format_value(row["value"]) if row["is_set"] else None,
        row["version"],
        row["owner"],
        format_time(row["time_ms"]) if row["is_set"] else None,
        notes,
    )


def known_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the row of a setting that may be set."""
    about: Mapping[str, Any] = row["about"]
    return (
        row["key"],
        format_value(row["effective"]),
        row["source"],
        about.get("range"),
        about.get("help"),
    )


def one_side(value: Any) -> str | None:
    """Return a value before or after a change; None where it was not set."""
    return None if value is None else format_value(value)
