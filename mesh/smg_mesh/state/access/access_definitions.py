"""Access definitions: issuers of tokens, or roles, as operators defined them for the cluster, one value per name.

    issuer/NAME, role/NAME = what JSON can say, as settings are kept

What the fields mean is for the reader that knows issuers and roles; here they are kept and passed on.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.json_value import Json, read_json, write_json

DefinitionKind: TypeAlias = Literal["issuer", "role"]


class AccessDefinition(msgspec.Struct, frozen=True):
    """What was defined under a name; `version` is what a compare-and-set names, `owner` the node it was written on.

    `value` is None where this release cannot read it.
    """

    alias: str
    value: Json
    version: int
    owner: str
    time_ms: int


class AccessDefinitions:
    """All definitions of one kind, as this node reads and writes them. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace, kind: DefinitionKind) -> None:
        self._namespace: Final = namespace
        self._kind: Final = kind
        self._head: Final = f"{kind}/"

    def get(self, alias: str) -> AccessDefinition | None:
        """Return what counts under a name, None if nothing does."""
        held = self._namespace.get(self._head + alias)
        return None if held is None else self._read(held)

    def all(self) -> Sequence[AccessDefinition]:
        """Return all definitions, sorted by name."""
        return [self._read(held) for held in self._namespace.items(self._head)]

    def set(self, alias: str, value: object, *, version: int | None) -> AccessDefinition:
        """Define it on all nodes. `version` is the one that the writer knows, 0 for none, None whatever it is.

        ValueError for what is no JSON; StateError "stale" for another version, "too_large", "full".
        """
        if not alias or "/" in alias:
            raise ValueError(f"no name of such a definition ({self._kind}): {alias[:64]!r}")
        return self._read(self._namespace.put(self._head + alias, write_json(value), seen=version))

    def remove(self, alias: str, *, version: int | None) -> None:
        """Take a definition away, on all nodes; `version` as for `set`."""
        self._namespace.remove(self._head + alias, seen=version)

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the names whose definition changed. It may read and must not write."""
        head = self._head

        def look(keys: Sequence[str]) -> None:
            aliases = [key.removeprefix(head) for key in keys if key.startswith(head)]
            if aliases:
                heard(aliases)

        self._namespace.watch(look)

    def _read(self, held: Held) -> AccessDefinition:
        try:
            value = read_json(held.value or b"")
        except ValueError:
            value = None
        alias = held.key.removeprefix(self._head)
        return AccessDefinition(alias, value, held.version, held.owner, hlc_ms(held.version))
