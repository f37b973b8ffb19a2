"""Discovery service: tells the HTTP surface of sources of workers, and writes the cluster's definitions of them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec.structs import replace

from smg_mesh.shared import StateError
from smg_node.cluster.discovery.source_definitions import (
    CODE,
    SOURCES_MAX,
    SPEC,
    Key,
    checked_definition,
)
from smg_node.cluster.workers.discovery_views import ClusterDiscovery
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.discovery import (
    DefinedSource,
    DiscoveryView,
    SourceChange,
    SourceView,
)
from smg_node.http.ports.shared_state import StaleValueError

if TYPE_CHECKING:
    from smg_mesh.shared import Shared

_LEFT: Final = "no living node follows the cluster's definition; its workers stay as they are"


class SourcesHere(Protocol):
    """Port to the sources of this process."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Definitions of the cluster that are not followed here, by KIND/NAME, and why."""
        ...

    def own(self) -> Collection[Key]:
        """Return the kinds and names of the sources in this node's own settings."""
        ...


class ClusterSources:
    """Sources of the whole cluster, as this node sees and changes them."""

    def __init__(self, here: SourcesHere, shared: "Shared") -> None:
        self._here: Final = here
        self._state: Final = shared.discovery
        self._views: Final = ClusterDiscovery(shared)

    # ── Seeing ───────────────────────────────────────────────────────────────

    def view(self) -> DiscoveryView:
        """Return all sources, by kind and name; see `DiscoveryService`."""
        defined = {key: one for key in self._keys() if (one := self._defined(key)) is not None}
        own = self._here.own()
        seen = self._views.view()
        sources = {(one.kind, one.name): one for one in seen.sources}
        for key in defined:
            known = sources.setdefault(key, SourceView(*key, "", "", 0, 0, "", ()))
            if not known.members:
                # Until it was heard of, this node is as good as any that follows it.
                trouble = _LEFT if "/".join(key) in self._here.unreadable else ""
                sources[key] = replace(known, trouble=trouble)
        shown = [
            replace(
                sources[key],
                defined="cluster" if key in defined else "node" if sources[key].members else "",
                definition=defined.get(key),
                overridden=key in defined and key in own,
            )
            for key in sorted(sources)
        ]
        return DiscoveryView(seen.node, shown, dict(sorted(self._here.unreadable.items())))

    def _keys(self) -> Collection[Key]:
        held = [one.key for one in self._state.all()]
        return [_key(key) for key in [*held, *(one.key for one in self._state.unreadable())]]

    def _defined(self, key: Key) -> DefinedSource | None:
        held = self._state.get("/".join(key))
        if held is None:
            version = self._version(key)
            return DefinedSource(*key, str(version), {}) if version else None
        value = held.value
        spec = value.get(SPEC) if isinstance(value, dict) else None
        return DefinedSource(*key, str(held.version), spec if isinstance(spec, dict) else {})

    def _version(self, key: Key) -> int:
        held = self._state.get("/".join(key))
        if held is not None:
            return held.version
        strange = (one for one in self._state.unreadable() if _key(one.key) == key)
        return next((one.version for one in strange), 0)

    # ── Changing ─────────────────────────────────────────────────────────────

    def check(self, kind: str, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a definition as it is kept; see `DiscoveryService`. Slow: for a thread."""
        return checked_definition(kind, name, body)

    def define(
        self, kind: str, name: str, checked: Mapping[str, Any], *, version: int | None
    ) -> SourceChange:
        """Define a source on all nodes; see `DiscoveryService`."""
        before = self._defined((kind, name))
        others = {*self._keys(), *self._here.own()} - {(kind, name)}
        if sum(one == kind for one, _ in others) >= SOURCES_MAX:
            raise invalid(f"there are {SOURCES_MAX} sources of that kind already", "name", CODE)
        self._write((kind, name), checked, version)
        return SourceChange(before, self._defined((kind, name)))

    def remove(self, kind: str, name: str, *, version: int | None) -> SourceChange:
        """Take the cluster's definition away; see `DiscoveryService`."""
        before = self._defined((kind, name))
        if before is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"the cluster defines no source {kind}/{name[:64]}; those of nodes' own settings are taken out of there",
                where="name",
                code="source_not_found",
            )
        self._write((kind, name), None, version)
        return SourceChange(before, None)

    def is_own(self, kind: str, name: str) -> bool:
        """Whether this node's own settings have a source of that name; see `DiscoveryService`."""
        return (kind, name) in self._here.own()

    def _write(self, key: Key, value: object, version: int | None) -> None:
        name = "/".join(key)
        try:
            if value is None:
                self._state.remove(name, version=version)
            else:
                self._state.set(name, value, version=version)
        except StateError as error:
            if error.reason == "stale":
                now = str(self._version(key))
                raise StaleValueError(f"source {name}", now, self._defined(key)) from error
            if error.reason == "too_large":
                raise invalid(str(error), None, "source_too_large") from error
            code = f"state_{error.reason}"
            raise SmgError(ErrorKind.OVERLOADED, str(error), code=code) from error


def _key(text: str) -> Key:
    kind, _, name = text.partition("/")
    return kind, name
