"""Audit row: one row of the audit log, and the bytes it is kept as."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.state.json_value import Json, read_json, write_json
from smg_mesh.state.unknown_versions import read_map

VALUE_BYTES_MAX: Final = 4096
"""Of `before` and of `after`; what is larger is cut to its digest."""
TEXT_CHARS_MAX: Final = 256
_ROW_BYTES: Final = 96
"""What a document needs for an entry beside key and value, about."""
_TEXTS: Final = ("who", "address", "action", "subject", "request_id")


class AuditRow(msgspec.Struct, frozen=True):
    """One change that was asked for. Ids sort by time; `time_ms` is by the clock of `node`."""

    id: str
    time_ms: int
    node: str
    who: str
    address: str
    action: str
    """What was done, as `noun.verb`: `worker.add`."""
    subject: str
    """What it was done to: an id, a key, a name."""
    before: Json = None
    after: Json = None
    request_id: str = ""


class _Words(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row as it is kept."""

    node: str
    action: str
    who: str = ""
    address: str = ""
    subject: str = ""
    request_id: str = ""
    before: bytes = b""
    after: bytes = b""


@dataclass(frozen=True, slots=True)
class Kept:
    """A row with where it lies, and about how much room it takes."""

    key: str
    row: AuditRow
    size_bytes: int


_encoder = msgspec.msgpack.Encoder()


def encode_row(
    node: str,
    *,
    texts: Sequence[str],
    values: tuple[object, object],
    cut_above_bytes: int = VALUE_BYTES_MAX,
) -> bytes:
    """Return the bytes of a row; `texts` as in `_TEXTS`, `values` before and after.

    ValueError for what JSON cannot say.
    """
    said = dict(zip(_TEXTS, map(_cut_text, texts), strict=True))
    before, after = (_cut(value, cut_above_bytes) for value in values)
    return _encoder.encode(_Words(node, said.pop("action"), before=before, after=after, **said))


def read_row(held: Held) -> tuple[Kept, tuple[str, ...]]:
    """Return the row, and the names in it that are not known here; ValueError for no row."""
    value = held.value or b""
    decoded = read_map(value)
    try:
        words = msgspec.convert(decoded, _Words, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    row = AuditRow(
        id=f"{held.version:016x}-{words.node}",
        time_ms=hlc_ms(held.version),
        node=words.node,
        who=words.who,
        address=words.address,
        action=words.action,
        subject=words.subject,
        before=read_json(words.before) if words.before else None,
        after=read_json(words.after) if words.after else None,
        request_id=words.request_id,
    )
    strange = tuple(sorted(name for name in decoded if name not in _Words.__struct_fields__))
    return Kept(held.key, row, len(held.key) + len(value) + _ROW_BYTES), strange


def _cut_text(text: str) -> str:
    """Return the text, not too long, and without halves of characters."""
    return text[:TEXT_CHARS_MAX].encode("utf-8", "replace").decode()


def _cut(value: object, above_bytes: int) -> bytes:
    """Return the bytes of a value, of a large one those of its digest, of None none."""
    if value is None:
        return b""
    data = write_json(value)
    if len(data) <= above_bytes:
        return data
    digest = blake2b(data, digest_size=16).hexdigest()
    return write_json({"cut": {"bytes": len(data), "blake2b": digest}})
