"""Opening of a store by its URL: a registry of kinds, each with the factory that makes it.

What is built in and what others bring comes in the same way: a name, the scheme of the URL, and where its factory is.
Nothing is imported before a URL asks for it, so a node whose history is in memory loads no driver. Others register
an entry point of the group `smg.stores`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, cast

from smg_storage.options import StoreOptions
from smg_storage.store import HistoryStore
from smg_storage.url import StoreUrl, StoreUrlError, parse_store_url

GROUP: Final = "smg.stores"
Clock = Callable[[], int]
"""Microseconds since 1970, UTC."""

_BUILT_IN: Final[Mapping[str, str]] = {
    "memory": "smg_storage.memory.store:open_store",
    "none": "smg_storage.no_store:open_store",
    "sqlite": "smg_storage.sql.open:open_store",
    "postgresql": "smg_storage.sql.open:open_store",
    "oracle": "smg_storage.sql.open:open_store",
    "redis": "smg_storage.redis.open:open_store",
}


class StoreFactory(Protocol):
    """Factory of stores; a store connects when it is started, not before."""

    def __call__(self, url: StoreUrl, options: StoreOptions, now_us: Clock, /) -> HistoryStore:
        """Return a store that has not been started."""
        ...


class StoreRegistry:
    """The kinds of stores there are; each is taken once."""

    def __init__(self) -> None:
        self._known: dict[str, EntryPoint] = {}

    def add(self, entry: EntryPoint) -> None:
        """Register a kind; a second one of that name is refused."""
        if entry.name in self._known:
            raise StoreUrlError(f"there are two stores called {entry.name!r}")
        self._known[entry.name] = entry

    @property
    def kinds(self) -> tuple[str, ...]:
        """What there is, sorted."""
        return tuple(sorted(self._known))

    def factory(self, kind: str) -> StoreFactory:
        """Load the factory of a kind; StoreUrlError says what is not installed, or not there."""
        entry = self._known[kind]
        try:
            found = getattr(import_module(entry.module), entry.attr)
        except ModuleNotFoundError as error:
            raise StoreUrlError(
                f"the store {kind} needs the package {error.name!r}, which is not installed"
            ) from error
        except AttributeError as error:
            raise StoreUrlError(f"the store {kind} has no factory at {entry.value}") from error
        return cast(StoreFactory, found)


def known_stores() -> StoreRegistry:
    """Return what is built in and what is installed beside it."""
    registry = StoreRegistry()
    for kind, place in _BUILT_IN.items():
        registry.add(EntryPoint(kind, place, GROUP))
    for entry in sorted(entry_points(group=GROUP), key=lambda found: (found.name, found.value)):
        registry.add(entry)
    return registry


def open_store(
    url: str | StoreUrl,
    *,
    options: StoreOptions,
    now_us: Clock,
    registry: StoreRegistry | None = None,
) -> HistoryStore:
    """Return the store of a URL, not started yet; StoreUrlError if there is none of that kind."""
    known = registry if registry is not None else known_stores()
    others = tuple(kind for kind in known.kinds if kind not in _BUILT_IN)
    parsed = url if isinstance(url, StoreUrl) else parse_store_url(url, plugged_in=others)
    return known.factory(parsed.kind)(parsed, options, now_us)
