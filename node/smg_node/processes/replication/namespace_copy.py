"""Namespace copy: a namespace of shared state in a data process, kept current by control. Pure.

It is read through the same views as the original, so that what a worker, a setting, a key or a limit is, is decided by
the same code in all processes. Nothing is written here: what operators want is answered by the control process.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from smg_mesh.shared import Entry, Held, StateError
from smg_node.processes.replication.state_messages import Row

_DIGEST_BYTES: Final = 8


class CopiedNamespace:
    """Read-only copy; see `smg_mesh.crdt.namespace.Namespace`, of which this is one."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._held: dict[str, Held] = {}
        self._live = 0
        self._watching: list[Callable[[Sequence[str]], None]] = []

    # ── What the control process says ────────────────────────────────────────

    def replace(self, rows: Mapping[str, Row | None]) -> None:
        """Hold exactly these."""
        gone = {key: None for key in self._held if key not in rows}
        self.change({**gone, **{key: row for key, row in rows.items() if self._is_new(key, row)}})

    def change(self, rows: Mapping[str, Row | None]) -> None:
        """Hold these as they are now, and notify watchers."""
        for key, row in rows.items():
            before = self._held.pop(key, None)
            self._live -= before is not None and before.value is not None
            if row is not None:
                self._held[key] = _held_of(row)
                self._live += row.value is not None
        if rows:
            keys = sorted(rows)
            for heard in self._watching:
                heard(keys)

    def _is_new(self, key: str, row: Row | None) -> bool:
        held = self._held.get(key)
        return held is None or row is None or _row_of(held) != row

    # ── What views ask ───────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def get(self, key: str) -> Held | None:
        """Return the winner, None if there is none or it is a removal."""
        held = self._held.get(key)
        return held if held is not None and held.value is not None else None

    def latest(self, key: str) -> Held | None:
        """Return the winner even if it is a removal."""
        return self._held.get(key)

    def items(self, prefix: str = "") -> Sequence[Held]:
        """Return the live winners whose keys begin so, sorted by key."""
        found = [held for key, held in self._held.items() if key.startswith(prefix)]
        return sorted((held for held in found if held.value is not None), key=lambda one: one.key)

    def conflicts(self, key: str) -> Sequence[Held]:
        """Return nothing: conflicts are shown where they can be ended."""
        return ()

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Call `heard` with every change from now on."""
        self._watching.append(heard)

    def digest(self) -> bytes:
        """Return a constant: the copy of a process is never compared."""
        return bytes(_DIGEST_BYTES)

    def __len__(self) -> int:
        return self._live

    # ── What is not for a copy ───────────────────────────────────────────────

    def put(self, key: str, value: bytes, *, seen: int | None = None) -> Held:
        """Refuse."""
        self._refuse()

    def remove(self, key: str, *, seen: int | None = None) -> Held:
        """Refuse."""
        self._refuse()

    def retire(self, key: str) -> None:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StateError("closed", f"{self._name} is written by the control process")


def row_of(held: Held | None) -> Row | None:
    """Return an entry as it travels to a copy."""
    return None if held is None else _row_of(held)


def _row_of(held: Held) -> Row:
    entry = held.entry
    return Row(held.key, held.owner, entry.hlc, entry.boot, entry.seen, entry.value)


def _held_of(row: Row) -> Held:
    return Held(row.key, row.owner, Entry(row.version, row.boot, row.seen, row.value))
