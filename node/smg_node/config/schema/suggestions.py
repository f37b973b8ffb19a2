"""Suggestions for a misspelled name: the nearest known one, as `did you mean`."""

from collections.abc import Iterable

# Below this likeness (Ratcliff and Obershelp, 0..1) a suggestion is noise: `--mesh` is not `--metrics`.
_LIKENESS_MIN = 0.65


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the entry of `known` that is nearest to `name`, or None when nothing is close."""
    # Imported here: only a refusal needs it, and `smg-node` pays for every import at every start.
    from difflib import get_close_matches

    found = get_close_matches(name[:200], known, n=1, cutoff=_LIKENESS_MIN)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or the empty string when nothing is close."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found is not None else ""
