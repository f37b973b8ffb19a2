"""Issuer definitions: issuers of tokens as operators defined them for the whole cluster, one value per name.

    issuer/ALIAS = what JSON can say, as settings are kept

What the fields mean is for the reader that knows issuers; here they are kept and passed on.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.json_value import Json, read_json, write_json

_HEAD: Final = "issuer/"


class IssuerDefinition(msgspec.Struct, frozen=True):
    """What was defined under a name; `version` is what a compare-and-set names, `owner` the node it was written on.

    `value` is None where this release cannot read it.
    """

    alias: str
    value: Json
    version: int
    owner: str
    time_ms: int


class IssuerDefinitions:
    """All definitions, as this node reads and writes them. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace

    def get(self, alias: str) -> IssuerDefinition | None:
        """Return what counts under a name, None if nothing does."""
        held = self._namespace.get(_HEAD + alias)
        return None if held is None else _read(held)

    def all(self) -> Sequence[IssuerDefinition]:
        """Return all definitions, sorted by name."""
        return [_read(held) for held in self._namespace.items(_HEAD)]

    def set(self, alias: str, value: object, *, version: int | None) -> IssuerDefinition:
        """Define an issuer on all nodes. `version` is the one that the writer knows, 0 for none, None whatever it is.

        ValueError for what is no JSON; StateError "stale" for another version, "too_large", "full".
        """
        if not alias or "/" in alias:
            raise ValueError(f"no name of an issuer: {alias[:64]!r}")
        return _read(self._namespace.put(_HEAD + alias, write_json(value), seen=version))

    def remove(self, alias: str, *, version: int | None) -> None:
        """Take a definition away, on all nodes; `version` as for `set`."""
        self._namespace.remove(_HEAD + alias, seen=version)

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the names whose definition changed. It may read and must not write."""

        def look(keys: Sequence[str]) -> None:
            aliases = [key.removeprefix(_HEAD) for key in keys if key.startswith(_HEAD)]
            if aliases:
                heard(aliases)

        self._namespace.watch(look)


def _read(held: Held) -> IssuerDefinition:
    try:
        value = read_json(held.value or b"")
    except ValueError:
        value = None
    alias = held.key.removeprefix(_HEAD)
    return IssuerDefinition(alias, value, held.version, held.owner, hlc_ms(held.version))
