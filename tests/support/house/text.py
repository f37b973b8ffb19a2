"""House rules that read any file: what a tree that stands alone must not say, and what it must."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from support.house.tree import FLOORS, Finding, Rule, Source

_UNFINISHED: Final = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HA[C]K|TB[D])\b")

# What a tree that builds anywhere does not know: who serves packages to whom, and whose disk it lay on.
_PLACES: Final = re.compile(
    r"\bpypi\.org|\bpythonhosted\.org|\bnpmjs\.org|\bdownload\.pytorch\.org|\bartifactory\b"
    r"|(?<![\w.$})])/(?:root|work|mnt|Users)/|(?<![\w.$})])/home/\w+/|/tmp/w[/]|/opt/(?:wheels|pypi)"
    r"|\.\./shared\b|\bshared/(?:DESIGN|STYLE|spec|engines|hooks)\b"
)
_LOCKED_PLACE: Final = re.compile(r"://|^\s*-(?!-hash)")


def _lines_with(wanted: re.Pattern[str], source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, of one that has what is looked for anywhere."""
    if wanted.search(source.text):
        yield from enumerate(source.lines, 1)


def nothing_is_left_to_do(source: Source) -> Iterator[Finding]:
    """What is to be done stands in the issues, not in the source."""
    for number, line in _lines_with(_UNFINISHED, source):
        if found := _UNFINISHED.search(line):
            yield Finding(source.path, number, f"{found[0]}: do it, or write an issue")


def the_tree_stands_alone(source: Source) -> Iterator[Finding]:
    """Nothing names a package registry, somebody's disk, or papers that are not in the tree."""
    for number, line in _lines_with(_PLACES, source):
        if found := _PLACES.search(line):
            yield Finding(source.path, number, f"{found[0]!r} is only there where this was written")


def locks_name_no_place(source: Source) -> Iterator[Finding]:
    """A lock file holds names, versions and hashes; where to get them is each machine's own affair."""
    if source.path.endswith("uv.lock"):
        yield Finding(source.path, 1, "uv.lock names the registry it was made from")
    if source.path.endswith(".lock"):
        for number, line in enumerate(source.lines, 1):
            if _LOCKED_PLACE.search(line):
                yield Finding(source.path, number, "a lock file names a place or an option")


RULES: Final[tuple[Rule, ...]] = (
    nothing_is_left_to_do,
    the_tree_stands_alone,
    locks_name_no_place,
)


def rooms(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Return the rooms of each floor: the folders and files right below its package, or its own."""
    found: dict[str, set[str]] = {}
    for source in sources:
        floor, *inner = PurePosixPath(source.path).parts
        if floor not in (*FLOORS, "tests", "deploy") or not inner:
            continue
        if floor in FLOORS:
            inner = inner[1:]
        name = inner[0].removesuffix(".py") if inner else "README.md"
        if name not in ("README.md", "__init__", "py.typed"):
            found.setdefault(floor, set()).add(name)
    return found


def unexplained_rooms(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield the rooms that their floor's README does not name in backquotes, and READMEs that lack."""
    readmes = {source.path: source.text for source in sources if source.path.endswith("README.md")}
    for floor, names in sorted(rooms(sources).items()):
        path = f"{floor}/README.md"
        if path not in readmes:
            yield Finding(path, 1, "this floor has no README")
            continue
        named = set(re.findall(r"`([\w.-]+?)(?:/|\.py)?`", readmes[path]))
        for name in sorted(names - named):
            yield Finding(path, 1, f"says nothing about `{name}`", name)
