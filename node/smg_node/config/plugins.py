"""Plug-ins of installed packages: entry points of a group, by name."""


def installed(group: str) -> tuple[tuple[str, str], ...]:
    """Return the entry points of a group as names and `module:object`, sorted; imports none of
    them.
    """
    # Imported here: it weighs, and only the process that reads the configuration asks.
    from importlib.metadata import entry_points

    return tuple(sorted((point.name, point.value) for point in entry_points(group=group)))
