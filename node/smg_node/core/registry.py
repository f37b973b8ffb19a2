"""Registry of plug-ins: maps the names of one kind of thing to the things, built in or installed.

Built-ins and third parties register the same way: an entry point of group `smg.<thing>` names a
factory. The registry only keeps names; the wiring loads entry points.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from smg_node.core.errors import ErrorKind, SmgError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named things of one kind; a name is taken once."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._known: dict[str, T] = {}

    def add(self, name: str, thing: T) -> None:
        """Register `thing`; a second one under the same name is a CONFLICT."""
        if name in self._known:
            raise SmgError(ErrorKind.CONFLICT, f"there are two {self.kind}s called {name!r}")
        self._known[name] = thing

    def get(self, name: str) -> T:
        """Return the thing called `name`; NOT_FOUND with the nearest known name otherwise."""
        found = self._known.get(name)
        if found is None:
            # Loaded with the first mistake.
            from difflib import get_close_matches

            near = get_close_matches(name, self._known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(self)}"
            raise SmgError(ErrorKind.NOT_FOUND, f"no {self.kind} is called {name!r}{hint}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._known))
