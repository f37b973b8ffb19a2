"""Names under which models know the tools of servers: valid for every engine and vendor, and unique in a request. Pure.

A tool has its own name if that is valid and nothing else has it, else `label__name`, else its beginning and six digits of
a digest. Which of these it is does not depend on the order of servers or tools.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

NAME_CHARACTERS_MAX: Final = 64
_VALID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARACTERS_MAX}}}")
_INVALID_CHARACTER: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS: Final = 6


class Named(NamedTuple):
    """A tool by its server's label and name; `alias` is what an operator calls it, "" for nothing."""

    label: str
    tool: str
    alias: str = ""


def model_names(tools: Sequence[Named], taken: Collection[str]) -> Mapping[Named, str]:
    """Return the name of each tool, none of them one of `taken`."""
    ordered = sorted(set(tools))
    plain = {tool: _plain(tool) for tool in ordered}
    wanted = Counter(plain.values())
    used = set(taken)
    names = {
        tool: name
        for tool, name in plain.items()
        if name and wanted[name] == 1 and name not in used
    }
    used.update(names.values())
    rest = [tool for tool in ordered if tool not in names]
    prefixed = {tool: _valid(f"{tool.label}__{plain[tool] or tool.tool}") for tool in rest}
    counts = Counter(prefixed.values())
    for tool in rest:
        name = prefixed[tool]
        if name and counts[name] == 1 and name not in used:
            names[tool] = name
    used.update(names.values())
    for tool in rest:
        if tool not in names:
            names[tool] = _digested(tool, used)
            used.add(names[tool])
    return names


def _plain(tool: Named) -> str:
    return _valid(tool.alias) or _valid(tool.tool)


def _valid(name: str) -> str:
    return name if _VALID.fullmatch(name) else ""


def _digested(tool: Named, used: Collection[str]) -> str:
    """Return a name by digest; a longer one where even that is taken, as only somebody who tries can make it."""
    digest = hashlib.blake2b(f"{tool.label}\0{tool.tool}".encode("utf-8", "replace")).hexdigest()
    beginning = _INVALID_CHARACTER.sub("_", _valid(tool.alias) or tool.tool)
    for digits in range(_DIGITS, NAME_CHARACTERS_MAX):
        name = f"{beginning[: NAME_CHARACTERS_MAX - digits - 1]}_{digest[:digits]}"
        if name not in used:
            return name
    raise AssertionError("nobody takes every beginning of a digest")
