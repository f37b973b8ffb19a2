"""JSON Pointer (RFC 6901) into claims: their names hold dots and slashes, which paths with dots could not say. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)+")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,3}", re.ASCII)


class Missing:
    """What a pointer finds where there is nothing, told from a `null` that is there."""


MISSING: Final = Missing()


def pointer_names(pointer: str) -> tuple[str, ...]:
    """Return the names a pointer leads through, unescaped; ValueError for one that is none or is the whole."""
    if not _POINTER.fullmatch(pointer):
        raise ValueError(f"{pointer[:64]!r} is not a JSON Pointer such as /realm_access/roles")
    return tuple(
        name.replace("~1", "/").replace("~0", "~") for name in pointer.removeprefix("/").split("/")
    )


def pointed(claims: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value that names lead to, `MISSING` if there is none."""
    found: Any = claims
    for name in names:
        if isinstance(found, dict):
            found = found.get(name, MISSING)
        elif isinstance(found, list) and _INDEX.fullmatch(name) and int(name) < len(found):
            found = found[int(name)]
        else:
            return MISSING
    return found
