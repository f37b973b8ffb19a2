"""Live settings: the part of its configuration that a node takes from the cluster while it runs.

    effective value = the cluster's, where there is one that this version can read, else the node's own

The cluster's values are replicated and may change at any moment, here or elsewhere. They are read
as a whole after each change; parts that were built from settings are notified and take over their
own. A value that this version cannot read (a setting of a newer release, a value out of its range)
is left where it is, not followed, and reported: nodes of two releases must not fight over it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from smg_node.cluster.definition_ports import SharedValue, StrangeValue
from smg_node.config.frozen_settings import Settings, with_values
from smg_node.config.schema.live_settings import Check, LiveError, LiveKnob, LiveTable, plain
from smg_node.config.schema.problems import printable, shown
from smg_node.http.ports.shared_state import ConfigState

Apply: TypeAlias = Callable[[Settings], None]
"""Takes over what changed; told all settings as they are effective now."""

CLUSTER: Final = "cluster"
NODE: Final = "node"
DEFAULT: Final = "default"
_HASH_BYTES: Final = 8
_MODELS: Final = "models"

_log = logging.getLogger("smg_node.cluster")


class Setting(SharedValue, Protocol):
    """The winning value of a setting."""

    @property
    def conflicts(self) -> Sequence[SharedValue]:
        """Values that were written concurrently."""
        ...


class Strange(StrangeValue, Protocol):
    """A setting whose bytes this version cannot read."""

    @property
    def owner(self) -> str:
        """The node it was written on."""
        ...

    @property
    def detail(self) -> str:
        """Why it cannot be read."""
        ...


class SettingsStore(Protocol):
    """Port to the replicated settings; `smg_mesh.shared` has them."""

    def get(self, key: str) -> Setting | None:
        """Return the winning value, None if there is none."""
        ...

    def all(self) -> Sequence[Setting]:
        """Return all winning values, sorted by key."""
        ...

    def set(self, key: str, value: Any, *, version: int | None) -> SharedValue:
        """Write; StateError "stale" if another version is there."""
        ...

    def remove(self, key: str, *, version: int | None) -> object:
        """Write a removal; StateError "stale" if another version is there."""
        ...

    def unreadable(self) -> Sequence[Strange]:
        """Return those that this version cannot read."""
        ...

    def conflicts(self, key: str) -> Sequence[SharedValue]:
        """Return the values written concurrently with the winning one, newest first."""
        ...

    def digest(self) -> str:
        """Return 16 hexadecimal digits over all winning values."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Call `heard` with keys that changed."""
        ...


class RunningStore(Protocol):
    """Port to the nodes' reports of the settings they run; `smg_mesh.shared` has it."""

    def publish(self, **facts: str) -> object:
        """Publish this node's report, from now on."""
        ...

    def all(self) -> Mapping[str, Mapping[str, Any]]:
        """Return each node's report, by name."""
        ...


class LiveSettings:
    """The settings this node runs with. `effective` is all of them; replaced, never changed."""

    def __init__(
        self,
        own: Settings,
        store: SettingsStore,
        running: RunningStore,
        *,
        choices: Mapping[str, Sequence[str]] | None = None,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        self.table: Final = LiveTable(own.live, choices, checks)
        self.own: Final = own
        self.effective = own
        self._store = store
        self._running = running
        self._followed: dict[str, Any] = {}
        self._ignored: dict[str, str] = {}
        self._unread: set[str] | None = None
        """What was heard of and not read yet; None before the first time: everything."""
        self._watchers: list[tuple[Collection[str], Apply]] = []
        self._changed = asyncio.Event()
        store.watch(self._heard)

    # ── Reading ──────────────────────────────────────────────────────────────

    def value(self, key: str) -> Any:
        """Return the effective value; LiveError for an unknown key."""
        return self._followed[key] if key in self._followed else self.own_value(key)

    def own_value(self, key: str) -> Any:
        """Return the value that default, file, environment and flags of this node give."""
        knob, model = self.table.find(key)
        if not model:
            found: Any = self.own
            for name in key.split("."):
                found = getattr(found, name)
            return found
        configured = self.own.models.get(model)
        return knob.default if configured is None else _value(configured, _field(knob))

    def source(self, key: str) -> str:
        """Return the source of the effective value: cluster, node or default."""
        if key in self._followed:
            return CLUSTER
        knob, _ = self.table.find(key)
        return DEFAULT if self.own_value(key) == knob.default else NODE

    def ignored(self) -> Mapping[str, str]:
        """Return the keys whose cluster-wide value this node does not follow, and why."""
        return self._ignored

    def conflicts(self) -> Sequence[str]:
        """Return the keys that several nodes wrote concurrently, sorted; reads them all."""
        return [said.key for said in self._store.all() if said.conflicts]

    def known(self) -> Sequence[str]:
        """Return all keys that have a value here or in the cluster, sorted."""
        fields = [_field(knob) for knob in self.table.knobs.values() if _is_of_models(knob.key)]
        own = [f"{_MODELS}/{model}/{field}" for model in self.own.models for field in fields]
        return sorted({*self.table.single(), *own, *self._followed, *self._ignored})

    def of_models(self, field: str) -> Mapping[str, Any]:
        """Return this setting of every model that has one, by name: the configured and the cluster's."""
        own = {model: _value(section, field) for model, section in self.own.models.items()}
        head, tail = f"{_MODELS}/", f"/{field}"
        followed = {
            key.removeprefix(head).removesuffix(tail): value
            for key, value in self._followed.items()
            if key.startswith(head) and key.endswith(tail)
        }
        return {**own, **followed}

    def state(self) -> ConfigState:
        """Return the hashes of the settings this node runs."""
        digest = self._store.digest()
        if self._ignored:
            digest = _hash([digest, sorted(self._ignored)])
        known = [key for key in self.known() if key not in self._ignored or self._is_known(key)]
        return ConfigState(digest, _hash([[key, plain(self.value(key))] for key in known]))

    def _is_known(self, key: str) -> bool:
        try:
            self.table.find(key)
        except LiveError:
            return False
        return True

    # ── Following ────────────────────────────────────────────────────────────

    def watch(self, sections: Collection[str], apply: Apply) -> None:
        """Call `apply` when a setting of one of these sections changes; not for what is already so."""
        self._watchers.append((sections, apply))

    def refresh(self) -> None:
        """Take over the cluster's changes since the last time, if there are any."""
        heard, self._unread = self._unread, set()
        before, ignored_before = self._followed, self._ignored
        self._read(heard)
        changed = sorted(
            key
            for key in (heard if heard is not None else {*before, *self._followed})
            if (key in before) is not (key in self._followed)
            or before.get(key) != self._followed.get(key)
        )
        for key in sorted(self._ignored.keys() - ignored_before.keys()):
            _log.warning("setting %s is not followed: %s", printable(key), self._ignored[key])
        if not changed:
            return
        self._overlay()
        for key in changed:
            whose = "the cluster's" if key in self._followed else "this node's own"
            value = shown(plain(self.value(key)))
            _log.info("setting %s is %s now: %s word", printable(key), value, whose)
        sections = {_section(key) for key in changed}
        for wanted, apply in self._watchers:
            if not sections.isdisjoint(wanted):
                self._tell(apply, changed)

    async def run(self) -> None:
        """Follow the cluster, and publish what this node runs, until cancelled."""
        while True:
            self._changed.clear()
            self.refresh()
            state = self.state()
            self._running.publish(settings=state.hash, effective=state.effective)
            await self._changed.wait()

    def _heard(self, keys: Sequence[str]) -> None:
        # Called in the middle of a merge: what follows from it may wait for the loop's next turn.
        if self._unread is not None:
            self._unread.update(keys)
        self._changed.set()

    def _read(self, keys: Collection[str] | None) -> None:
        """Read these keys again, None: all. What was read before is replaced and not changed."""
        followed = dict(self._followed) if keys is not None else {}
        ignored = dict(self._ignored) if keys is not None else {}
        found = self._store.all() if keys is None else self._look_up(keys)
        for key in keys or ():
            followed.pop(key, None)
            ignored.pop(key, None)
        lost = keys is None or len(found) < len(keys)
        for strange in self._store.unreadable() if lost else ():
            if keys is None or strange.key in keys:
                ignored[strange.key] = printable(f"this version cannot read it: {strange.detail}")
        for said in found:
            if said.conflicts:
                _log.warning("setting %s was written on two nodes at once", printable(said.key))
            try:
                followed[said.key] = self.table.read(said.key, said.value)
            except LiveError as error:
                ignored[said.key] = printable(f"{error.where}: {error.message}".lstrip(": "))
        self._followed, self._ignored = followed, ignored

    def _look_up(self, keys: Collection[str]) -> Sequence[Setting]:
        found = (self._store.get(key) for key in sorted(keys))
        return [said for said in found if said is not None]

    def _overlay(self) -> None:
        values = {
            tuple(key.split(".")): value
            for key, value in self._followed.items()
            if not _is_of_models(key)
        }
        self.effective = with_values(self.own, values)

    def _tell(self, apply: Apply, changed: Sequence[str]) -> None:
        try:
            apply(self.effective)
        except Exception:
            # A boundary: one part that fails on a change must not keep the others from following.
            _log.exception("a change of %s was not taken over", ", ".join(map(printable, changed)))


def _is_of_models(key: str) -> bool:
    return key.startswith(f"{_MODELS}/")


def _section(key: str) -> str:
    return _MODELS if _is_of_models(key) else key.partition(".")[0]


def _field(knob: LiveKnob) -> str:
    return knob.key.rpartition("/")[2]


def _value(section: Any, field: str) -> Any:
    """Return a model's own setting; `mcp.expose` lies one section deeper."""
    return attrgetter(field)(section)


def _hash(value: object) -> str:
    return blake2b(msgspec.json.encode(value), digest_size=_HASH_BYTES).hexdigest()
