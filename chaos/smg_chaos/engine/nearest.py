"""Nearest known name: the error text for an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence that refuses `name` and suggests the nearest known one."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    return f"no {kind} is called {name!r}; {hint}"
