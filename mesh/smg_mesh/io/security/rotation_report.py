"""Rotation report: which nodes hold which keys, as an operator sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias

from smg_mesh.io.errors import MeshError

OK: Final = "ok"


class Held(NamedTuple):
    """The ring that one node holds: fingerprints, the primary's first."""

    version: int
    fingerprints: tuple[str, ...]


Survey: TypeAlias = Mapping[str, Held | str]
"""Name to what that node holds, or to the reason why that is not known."""


@dataclass(frozen=True, slots=True)
class KeyringReport:
    """Outcome of one step."""

    operation: str
    version: int
    """Of this node's ring."""
    primary: str
    """Fingerprint of the key that this node seals with."""
    keys: Mapping[str, tuple[str, ...]]
    """Fingerprint to the names of those who hold it."""
    members: Mapping[str, str]
    """Name to `ok`, or to why that node does not hold this node's ring."""

    @property
    def complete(self) -> bool:
        """Whether all hold the same ring."""
        return all(outcome == OK for outcome in self.members.values())

    @classmethod
    def of(cls, operation: str, me: str, mine: Held, survey: Survey) -> Self:
        """Return the report of the node `me`, which holds `mine`."""
        everybody = dict(sorted({**survey, me: mine}.items()))
        names: dict[str, tuple[str, ...]] = dict.fromkeys(mine.fingerprints, ())
        for name, held in everybody.items():
            for fingerprint in () if isinstance(held, str) else held.fingerprints:
                names[fingerprint] = (*names.get(fingerprint, ()), name)
        members = {name: _outcome(mine, held) for name, held in everybody.items()}
        return cls(operation, mine.version, mine.fingerprints[0], names, members)


class RotationError(MeshError):
    """A step was refused; `report` says which nodes hold what, if that was asked."""

    def __init__(self, message: str, report: KeyringReport | None = None) -> None:
        super().__init__(message)
        self.report: Final = report


def conflicts(mine: Held, survey: Survey) -> list[str]:
    """Return the names of nodes that hold another ring under the same version."""
    return [
        name
        for name, held in survey.items()
        if isinstance(held, Held) and held.version == mine.version and not _same(mine, held)
    ]


def _same(mine: Held, other: Held) -> bool:
    return mine.fingerprints[0] == other.fingerprints[0] and sorted(mine.fingerprints) == sorted(
        other.fingerprints
    )


def _outcome(mine: Held, held: Held | str) -> str:
    if isinstance(held, str):
        return held
    if _same(mine, held):
        return OK
    if held.version == mine.version:
        return "holds another ring of the same version"
    return f"holds version {held.version}, this node {mine.version}"
