"""Foreign keys taken over from other gateways: which of a list are new, which are there, which are refused. Pure.

The id of a foreign key follows from the key, so the same key is the same record wherever and however often it is
taken over, also on two nodes at a time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from smg_mesh.shared import FOREIGN, KeyRecord
from smg_node.access.foreign_key import foreign_digest, foreign_id
from smg_node.http.ports.keys import ForeignKey, RefusedKey

Known = Callable[[str], KeyRecord | None]
"""Returns the key with an id, good or not."""
_DIFFERENCES: Final = ("tenant", "role", "name", "expires_ms")


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Records to be written, how many are there already, and keys that are refused."""

    new: Sequence[KeyRecord]
    unchanged: int
    refused: Sequence[RefusedKey]


def record_of(wish: ForeignKey, now_ms: int) -> KeyRecord:
    """Return the record of a foreign key that is taken over now."""
    digest = foreign_digest(wish.sha256)
    return KeyRecord(
        foreign_id(digest),
        wish.tenant,
        wish.role,
        name=wish.name,
        digest=digest,
        created_ms=now_ms,
        expires_ms=wish.expires_ms or 0,
        kind=FOREIGN,
    )


def plan_take_over(wishes: Sequence[ForeignKey], known: Known, *, now_ms: int) -> TakeOver:
    """Return what comes of taking these keys over; of two of the same key the first counts."""
    new: dict[str, KeyRecord] = {}
    refused: list[RefusedKey] = []
    unchanged = 0
    for index, wish in enumerate(wishes):
        record = record_of(wish, now_ms)
        before = new.get(record.id) or known(record.id)
        if before is None:
            if wish.expires_ms is not None and wish.expires_ms <= now_ms:
                said = "the key has expired"
                refused.append(RefusedKey(index, record.id, "key_expired", said))
            else:
                new[record.id] = record
        elif before.revoked_ms:
            said = f"the key is revoked here, as {record.id}, and stays so"
            refused.append(RefusedKey(index, record.id, "key_revoked", said))
        elif differing := _differing(before, record):
            said = f"the key is there, as {record.id}, with another {' and '.join(differing)}"
            refused.append(RefusedKey(index, record.id, "key_differs", said))
        else:
            unchanged += 1
    return TakeOver(list(new.values()), unchanged, refused)


def _differing(before: KeyRecord, record: KeyRecord) -> Sequence[str]:
    """Return in what two records of one key differ, in words."""
    return [
        name.removesuffix("_ms")
        for name in _DIFFERENCES
        if getattr(before, name) != getattr(record, name)
    ]
