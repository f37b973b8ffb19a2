"""Definition writes: reads a definition from a file, and writes it if nobody else changed it meanwhile."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError, Answer
from smg_node.admin.views.value_text import read_file

PROVIDERS: Final = ("v1", "cluster", "providers")
ROUTES: Final = ("v1", "cluster", "routes")
SHADOWS: Final = ("v1", "cluster", "shadows")
PRICES: Final = ("v1", "cluster", "prices")
_MISSING: Final = 404
_STALE: Final = 409

IfVersion = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Only if this version is there: 0 if none may be, * for any. Else the one seen just now.",
    ),
]


def read_definition(file: str, part: str, name: str, *, section: str = "") -> Mapping[str, Any]:
    """Return the definition in a YAML or JSON file, `-` is the standard input: of `name` alone, or of a whole file of
    `providers:` and `routes:`. AdminError otherwise. A file of settings has the parts in `section`, where there is one.
    """
    # Imported here: only a definition that is read from a file needs it.
    from smg_node.config.schema.plain_yaml import read_plain

    try:
        found = read_plain(read_file(file))
    except ValueError as error:
        raise AdminError(f"{file}: {error}") from None
    if section and isinstance(found, dict) and isinstance(found.get(section), dict):
        found = found[section]
    if isinstance(found, dict) and isinstance(found.get(part), dict):
        known = found[part]
        if name not in known:
            raise AdminError(f"{file} has no {name} among its {part}: {', '.join(map(str, known))}")
        found = known[name]
    if not isinstance(found, dict):
        raise AdminError(f"{file} must hold a definition: one field a line, as kind: openai")
    return found


def present(client: AdminClient, *path: str) -> Mapping[str, Any] | None:
    """Return what is there; None if there is nothing."""
    answer = client.look("GET", *path)
    if answer.status == _MISSING:
        return None
    found: Mapping[str, Any] = client.taken(answer)
    return found


def version_of(seen: Mapping[str, Any] | None, if_version: str) -> Mapping[str, str]:
    """Return the header that names the version that may be overwritten."""
    version = if_version or ("0" if seen is None else str(seen["version"]))
    if version != "*" and not (version.isascii() and version.isdecimal()):
        raise typer.BadParameter("a version is a number, or *", param_hint="--if-version")
    return {"if-match": "*" if version == "*" else f'"{version}"'}


def written(client: AdminClient, what: str, answer: Answer) -> Mapping[str, Any]:
    """Return what a write did; AdminError that shows what is there if it was refused for that."""
    if answer.status == _STALE and isinstance(answer.body, dict) and "current" in answer.body:
        current = answer.body["current"]
        there = "it is not defined" if current is None else f"it is version {current['version']}"
        raise AdminError(f"{what} was changed by somebody else: {there}; nothing was written")
    done: Mapping[str, Any] = client.taken(answer)
    return done
