"""Route suggestions: the route that a request for an unknown path most likely meant.

Found are doubled and trailing slashes, a base URL with `/v1` too much or too little, capitals, and one
misspelled word of a path. Only requests that fail pay for it: about 0.1 ms.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, TypeAlias

Template: TypeAlias = tuple[tuple[str, ...], Collection[str]]
"""The segments of a route's path, `{name}` and `{name+}` among them, and its methods."""

PATH_CHARACTERS_MAX: Final = 200
_SEGMENTS_MAX: Final = 16
_VERSION: Final = "v1"
_CLUSTER: Final = "cluster"
# Less alike is something else: `moderations` and `conversations` share three quarters.
_LIKENESS_MIN: Final = 0.8


def nearest_route(method: str, path: str, templates: Sequence[Template]) -> str:
    """Return `METHOD PATH` of the route that was meant, "" where none is near.

    A route that takes `method` goes before others; what stands for parameters of a path stays as it came.
    """
    segments = [segment for segment in path.split("/") if segment]
    if len(path) > PATH_CHARACTERS_MAX or not 0 < len(segments) <= _SEGMENTS_MAX:
        return ""
    wanted = "GET" if method == "HEAD" else method
    spellings = list(_spellings(segments))
    for misspelled in (0, 1):
        found = [
            (methods, "/" + "/".join(near))
            for spelling in spellings
            for template, methods in templates
            if (near := _meant(template, spelling, misspelled)) is not None
        ]
        found = [(methods, meant) for methods, meant in found if meant != path]
        for methods, meant in found:
            if wanted in methods:
                return f"{wanted} {meant}"
        if found:
            methods, meant = found[0]
            return f"{min(methods)} {meant}"
    return ""


def _spellings(segments: list[str]) -> Iterator[list[str]]:
    """Yield what a path may have been meant to be, the likeliest first."""
    yield segments
    lowered = [segment.lower() for segment in segments]
    if _VERSION not in lowered:
        yield [_VERSION, *segments]
        yield [_VERSION, _CLUSTER, *segments]
        return
    # What stands before the version is the prefix of a proxy or of another server, or the version once more.
    last = len(lowered) - 1 - lowered[::-1].index(_VERSION)
    rest = segments[last + 1 :]
    yield [_VERSION, *rest]
    yield rest
    yield [_VERSION, _CLUSTER, *rest]


def _meant(template: Sequence[str], spelling: list[str], misspelled: int) -> list[str] | None:
    """Return the path of this template that a spelling is, with so many misspelled words; None if it is none."""
    rest = bool(template) and template[-1].endswith("+}")
    if len(spelling) != len(template) and not (rest and len(spelling) > len(template)):
        return None
    meant = list(spelling)
    for at, expected in enumerate(template):
        if expected.startswith("{") or expected == spelling[at]:
            continue
        said = spelling[at].lower()
        if said != expected:
            misspelled -= 1
            if misspelled < 0 or not _alike(said, expected):
                return None
        meant[at] = expected
    return meant if misspelled == 0 else None


def _alike(said: str, expected: str) -> bool:
    # Loaded with the first mistake.
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, said, expected)
    return (
        matcher.real_quick_ratio() >= _LIKENESS_MIN
        and matcher.quick_ratio() >= _LIKENESS_MIN
        and matcher.ratio() >= _LIKENESS_MIN
    )
