"""What installed packages bring along for this node to use: their entry points, by name."""


def installed(group: str) -> tuple[tuple[str, str], ...]:
    """Return the entry points of a group as names and `module:object`, sorted; nothing of them is imported."""
    # Imported here: it weighs, and only the process that reads the configuration asks.
    from importlib.metadata import entry_points

    return tuple(sorted((point.name, point.value) for point in entry_points(group=group)))
