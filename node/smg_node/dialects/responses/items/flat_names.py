"""Flat names: the one name by which a model knows a tool of a namespace. Pure.

Templates and engines know functions by one name of at most 64 characters, the Responses API knows some by a
namespace and a name. Both are joined, `crm` and `lookup` to `crm__lookup`. Where that is too long, has other
characters than names may have, or is what another tool is called, it ends with a digest of both parts.
A flat name depends on its two parts and on the tools of the request only, so a history is always told with the
names that its request declares.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

NAME_CHARACTERS_MAX: Final = 64
_JOINT: Final = "__"
_DIGEST_BYTES: Final = 4
_READABLE_MAX: Final = NAME_CHARACTERS_MAX - 2 * _DIGEST_BYTES - 1
_NAMESPACE_MIN: Final = 8
"""So much of a namespace stays readable, however long the name is."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")


class NamespacedName(NamedTuple):
    """Name of a tool within its namespace."""

    namespace: str
    name: str


def flat_names(tools: Sequence[NamespacedName], taken: Iterable[str]) -> dict[str, NamespacedName]:
    """Return the tools, which all differ, by flat names that differ too, and from those `taken`."""
    joined = [_joined(tool) for tool in tools]
    often = Counter(joined)
    found: dict[str, NamespacedName] = {}
    used = set(taken)
    for tool, name in zip(tools, joined, strict=True):
        flat = name if often[name] == 1 and name not in used else _free(tool, used)
        used.add(flat)
        found[flat] = tool
    return found


class FlatNames:
    """Flat names of one request: those of its tools, and of any other tool that its history names."""

    def __init__(
        self, declared: Mapping[str, NamespacedName] | None = None, known: Iterable[str] = ()
    ) -> None:
        """Take the request's namespaced tools by their flat names, and the names of all its tools.

        Nothing is done with them before a call of a namespaced tool is met, which most histories lack.
        """
        self._declared = declared or {}
        self._names = known
        self._known: frozenset[str] = frozenset()
        self._flat: dict[NamespacedName, str] | None = None

    def of(self, namespace: str, name: str) -> str:
        """Return the flat name of this tool; one without a namespace has its own."""
        if not namespace:
            return name
        if self._flat is None:
            self._flat = {tool: flat for flat, tool in self._declared.items()}
            self._known = frozenset(self._names)
        tool = NamespacedName(namespace, name)
        flat = self._flat.get(tool)
        if flat is None:
            flat = _joined(tool)
            if flat in self._known:
                flat = _free(tool, self._known)
        return flat


def _joined(tool: NamespacedName) -> str:
    namespace, name = tool
    joint = "" if namespace.endswith(_JOINT) else _JOINT
    flat = f"{namespace}{joint}{name}"
    return flat if _PLAIN.match(flat) else _digested(tool, 0)


def _free(tool: NamespacedName, used: Collection[str]) -> str:
    """Return a flat name with a digest that none of these is."""
    number = 0
    while (flat := _digested(tool, number)) in used:
        number += 1
    return flat


def _digested(tool: NamespacedName, number: int) -> str:
    parts = "\0".join((*tool, str(number))).encode()
    digest = blake2b(parts, digest_size=_DIGEST_BYTES, person=b"smg flat names").hexdigest()
    namespace, name = (_OTHER.sub("_", part) for part in tool)
    head = namespace[: max(_READABLE_MAX - len(_JOINT) - len(name), _NAMESPACE_MIN)]
    return f"{head}{_JOINT}{name}"[:_READABLE_MAX] + f"_{digest}"
