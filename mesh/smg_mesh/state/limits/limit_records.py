"""Limit records: the rules of limits as one node holds them, read on change, found by scope."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.namespace import Namespace
from smg_mesh.state.limits.limit_rule import LimitRecord, read_record
from smg_mesh.state.limits.limit_scope import FIELDS, GLOBAL, patterns


class Kept(NamedTuple):
    """A record and what holds it."""

    held: Held
    record: LimitRecord


class LimitRecords:
    """The readable records of the namespace `limits`, those of rules that were taken away as well."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace
        self._kept: dict[str, Kept] = {}
        self._forms: Counter[tuple[str, ...]] = Counter()
        """Which of the fields of a scope the rules in force name, and how many name just these."""
        self._stale: dict[str, None] = {held.key: None for held in namespace.items()}
        self.read()

    def changed(self, scopes: Sequence[str]) -> None:
        """Let these be read again before anything else is asked."""
        self._stale.update(dict.fromkeys(scopes))

    def read(self) -> None:
        """Take over what was changed since the last time."""
        if not self._stale:
            return
        stale, self._stale = self._stale, {}
        for scope in stale:
            before = self._kept.pop(scope, None)
            if before is not None and before.record.in_force:
                self._forms[_form(before)] -= 1
            held = self._namespace.get(scope)
            kept = None if held is None else read_held(held)
            if kept is not None and stored(kept.record.scope) == scope:
                self._kept[scope] = kept
                if kept.record.in_force:
                    self._forms[_form(kept)] += 1
        self._forms += Counter()  # without those that nobody names

    def get(self, scope: str) -> Kept | None:
        """Return the record of exactly this scope."""
        self.read()
        return self._kept.get(scope)

    def all(self) -> Sequence[Kept]:
        """Return all, sorted by scope."""
        self.read()
        return [self._kept[scope] for scope in sorted(self._kept)]

    def forms(self) -> Sequence[tuple[str, ...]]:
        """Return which of the fields of a scope rules in force name together, sorted."""
        self.read()
        return sorted(self._forms)

    def speaking_of(self, instance: str) -> Iterator[Kept]:
        """Yield the records that speak of this scope, the most exact first."""
        self.read()
        for text in patterns(instance):
            kept = self._kept.get(stored(text))
            if kept is not None:
                yield kept

    def most_exact(self, instance: str) -> Kept | None:
        """Return the record that counts for this scope."""
        return next((kept for kept in self.speaking_of(instance) if kept.record.in_force), None)

    def rivals(self, scope: str) -> Sequence[Kept]:
        """Return the readable records that collide with that of a scope, newest first."""
        rivals = (read_held(held) for held in self._namespace.conflicts(scope))
        return [rival for rival in rivals if rival is not None]

    def __len__(self) -> int:
        """How many rules are in force."""
        self.read()
        return sum(self._forms.values())


def stored(scope: str) -> str:
    """Return the key under which a scope lies."""
    return scope or GLOBAL


def read_held(held: Held) -> Kept | None:
    """Return what is held, read; None for a removal, and for what this version cannot read."""
    try:
        return None if held.value is None else Kept(held, read_record(held.value))
    except ValueError:
        return None


def _form(kept: Kept) -> tuple[str, ...]:
    record = kept.record
    return tuple(field for field in FIELDS if getattr(record, field))
