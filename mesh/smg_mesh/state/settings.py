"""Settings of the whole cluster: a value per key, versioned, and both
values shown where two collide.

Values are what JSON can say, kept as msgpack. What this version cannot read is kept and passed on,
counts as no value here, and is listed. Whether a value makes sense is for the reader that knows the
key.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.json_value import Json, read_json, write_json
from smg_mesh.state.unknown_versions import Unreadable, unreadable

__all__ = ["Json", "SettingValue", "SettingsView"]


class SettingValue(msgspec.Struct, frozen=True):
    """A value under a key, or one that collides with it.

    `version` is what a compare-and-set names; `time_ms` when it was written, by the writer's clock.
    """

    key: str
    value: Json
    version: int
    owner: str
    time_ms: int
    conflicts: "tuple[SettingValue, ...]" = ()
    """Written without knowing of this one, newest first; until somebody writes again."""
    future: bool = False
    """Written by a clock more than a minute ahead: counts when its time has come."""
    removed: bool = False
    """It says that there is no value; only as a conflict."""


class SettingsView:
    """The namespace `settings` as node `me` reads and writes it. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace, me: str) -> None:
        self._namespace: Final = namespace
        self.me: Final = me

    def get(self, key: str) -> SettingValue | None:
        """Return what counts, None if nothing does or this version cannot read it."""
        held = self._namespace.get(key)
        return None if held is None else self._shown(held)

    def all(self) -> Sequence[SettingValue]:
        """Return every readable setting, sorted by key."""
        shown = (self._shown(held) for held in self._namespace.items())
        return [setting for setting in shown if setting is not None]

    def conflicts(self, key: str) -> tuple[SettingValue, ...]:
        """Return what collides with what counts, or waits for its time; newest first."""
        shown = (_value(held) for held in self._namespace.conflicts(key))
        return tuple(setting for setting in shown if setting is not None)

    def set(self, key: str, value: object, *, version: int | None) -> SettingValue:
        """Write a value. `version` is the one that the writer knows, 0 for none, None whatever it is.

        ValueError for what is no JSON; StateError "stale" for another version, "too_large", "full".
        """
        held = self._namespace.put(key, write_json(value), seen=version)
        shown = self._shown(held)
        assert shown is not None
        return shown

    def remove(self, key: str, *, version: int | None) -> None:
        """Take a value away, everywhere; `version` as for `set`."""
        self._namespace.remove(key, seen=version)

    def removed(self, key: str) -> int:
        """Return the version of the removal that counts under a key; 0 if none does, or it is forgotten."""
        held = self._namespace.latest(key)
        return held.version if held is not None and held.value is None else 0

    def digest(self) -> str:
        """Return 16 hex digits over all that counts, readable or not: equal where the same counts."""
        return self._namespace.digest().hex()

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the keys that changed. It may read and must not write."""
        self._namespace.watch(heard)

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by key; it is kept and passed on."""
        found = [_unreadable(held) for held in self._namespace.items()]
        return [one for one in found if one is not None]

    def __len__(self) -> int:
        return len(self._namespace)

    def _shown(self, held: Held) -> SettingValue | None:
        return _value(held, self.conflicts(held.key))


def _value(held: Held, conflicts: tuple[SettingValue, ...] = ()) -> SettingValue | None:
    """Return an entry as a setting; None if its bytes cannot be read."""
    try:
        value = None if held.value is None else read_json(held.value)
    except ValueError:
        return None
    return SettingValue(
        key=held.key,
        value=value,
        version=held.version,
        owner=held.owner,
        time_ms=hlc_ms(held.version),
        conflicts=conflicts,
        future=held.future,
        removed=held.value is None,
    )


def _unreadable(held: Held) -> Unreadable | None:
    try:
        read_json(held.value or b"")
    except ValueError as error:
        return unreadable(held, "value", str(error))
    return None
