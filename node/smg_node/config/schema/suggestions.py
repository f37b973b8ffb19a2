"""Suggestions for a misspelled name: the nearest known ones, as `did you mean`."""

from collections.abc import Iterable, Sequence

# Below this likeness (Ratcliff and Obershelp, 0..1) a suggestion is noise: `--mesh` is not `--metrics`.
_LIKENESS_MIN = 0.65


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the entry of `known` that is nearest to `name`, or None when nothing is close."""
    found = nearest_few(name, known, at_most=1)
    return found[0] if found else None


def nearest_few(name: str, known: Iterable[str], *, at_most: int) -> Sequence[str]:
    """Return the entries of `known` that are close to `name`, the nearest first."""
    # Imported here: only a refusal needs it, and `smg-node` pays for every import at every start.
    from difflib import get_close_matches

    return get_close_matches(name[:200], known, n=at_most, cutoff=_LIKENESS_MIN)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or the empty string when nothing is close."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found is not None else ""
