"""Label selectors: `app=vllm,tier in (chat,batch),!canary`, parsed and matched."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_KEY: Final = r"(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
_SET: Final = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_EQUAL: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_EXISTS: Final = re.compile(rf"(!?)\s*({_KEY})")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the value of a key; `values` is empty where it only must be there, or must not."""

    key: str
    is_wanted: bool
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels fulfil it; what is not there is in no set of values."""
        holds = self.key in labels and (not self.values or labels[self.key] in self.values)
        return holds == self.is_wanted


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Return the conditions of a selector, none for an empty one; ValueError with its words if it is none."""
    found: list[Requirement] = []
    rest = text.strip()
    while rest:
        requirement, length = _requirement(rest)
        found.append(requirement)
        rest = rest[length:].lstrip()
        if not rest:
            break
        if not rest.startswith(",") or not rest[1:].strip():
            raise ValueError(f"found {rest[:20]!r}, expected: ',' or the end")
        rest = rest[1:].lstrip()
    return tuple(found)


def matches(requirements: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    """Return whether labels fulfil all conditions."""
    return all(one.matches(labels) for one in requirements)


def _requirement(text: str) -> tuple[Requirement, int]:
    if found := _SET.match(text):
        values = frozenset(value.strip() for value in found[3].split(","))
        return Requirement(found[1], found[2] == "in", values), found.end()
    if found := _EQUAL.match(text):
        return Requirement(found[1], found[2] != "!=", frozenset({found[3]})), found.end()
    if found := _EXISTS.match(text):
        return Requirement(found[2], not found[1]), found.end()
    raise ValueError(f"found {text[:20]!r}, expected: a key, or '!'")
