"""Issuer keys: the public keys of token issuers, fetched by one node and known to all, also after a restart.

    set/ALIAS     = msgpack {digest, parts, fetched_ms, max_age_ms, source, node, part}      with the first part
    part/ALIAS/N  = msgpack {digest, part}                                                   the others, N from 1 on

The values of a namespace are small, and some issuers have many keys: so a set is cut. Its parts may come in any order
and mixed with those of the set before; a set counts when all of its parts are there, and until then the one before does.
`source` says where it was fetched, so that keys of another issuer that had the same alias once never count.
"""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.access.access_records import DIGEST_BYTES, IssuerKeySet, digest_of

SET_BYTES_MAX: Final = 65_536
"""Of one issuer: more than a hundred keys of 2,048 bits."""
ALIAS_CHARS_MAX: Final = 63
SOURCE_CHARS_MAX: Final = 512
_PART_BYTES_MAX: Final = 15_360
"""With what stands beside it, a part fits into a value."""
_PARTS_MAX: Final = -(-SET_BYTES_MAX // _PART_BYTES_MAX)
_SET: Final = "set/"
_PART: Final = "part/"
_TIME_MAX_MS: Final = (1 << 53) - 1

_Digest: TypeAlias = Annotated[bytes, Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
_Part: TypeAlias = Annotated[bytes, Meta(max_length=_PART_BYTES_MAX)]
_Time: TypeAlias = Annotated[int, Meta(ge=0, le=_TIME_MAX_MS)]


class _Head(msgspec.Struct, frozen=True):
    digest: _Digest
    parts: Annotated[int, Meta(ge=1, le=_PARTS_MAX)]
    fetched_ms: _Time
    max_age_ms: Annotated[int, Meta(ge=-1, le=_TIME_MAX_MS)]
    source: Annotated[str, Meta(max_length=SOURCE_CHARS_MAX)]
    node: Annotated[str, Meta(max_length=128)]
    part: _Part


class _More(msgspec.Struct, frozen=True):
    digest: _Digest
    part: _Part


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_head: Final = msgspec.msgpack.Decoder(_Head).decode
_decode_more: Final = msgspec.msgpack.Decoder(_More).decode


class IssuerKeys:
    """The sets of all issuers, as this node reads and writes them. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace
        self._whole: dict[str, IssuerKeySet] = {}
        self._heard: list[Heard] = []
        self._look_at([held.key for held in namespace.items()])
        namespace.watch(self._look_at)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, alias: str) -> IssuerKeySet | None:
        """Return the newest set that is whole here; None if there is none."""
        return self._whole.get(alias)

    def aliases(self) -> Sequence[str]:
        """Return the names of the issuers of which there is a set, sorted."""
        return sorted(self._whole)

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the aliases whose set changed. It may read and must not write."""
        self._heard.append(heard)

    def __len__(self) -> int:
        return len(self._whole)

    # ── Writing ──────────────────────────────────────────────────────────────

    def put(self, keys: IssuerKeySet) -> None:
        """Let all nodes know a set; ValueError for one that is too large, or has no proper name.

        The parts of a set that is there already are not written again.
        """
        if not 0 < len(keys.alias) <= ALIAS_CHARS_MAX or "/" in keys.alias:
            raise ValueError(f"no name of an issuer: {keys.alias[:64]!r}")
        if len(keys.document) > SET_BYTES_MAX:
            raise ValueError(
                f"the keys have {len(keys.document)} bytes, at most {SET_BYTES_MAX} are shared"
            )
        digest = keys.digest
        parts = _cut(keys.document)
        before = self._whole.get(keys.alias)
        if before is None or before.digest != digest:
            # First what the head needs: whoever has that then has all, mostly.
            for number, part in enumerate(parts[1:], 1):
                self._namespace.put(_part_key(keys.alias, number), _encode(_More(digest, part)))
        head = _Head(
            digest,
            len(parts),
            keys.fetched_ms,
            keys.max_age_ms,
            keys.source[:SOURCE_CHARS_MAX],
            keys.node,
            parts[0],
        )
        self._namespace.put(_SET + keys.alias, _encode(head))
        for number in range(len(parts), _PARTS_MAX):
            if self._namespace.get(_part_key(keys.alias, number)) is not None:
                self._namespace.remove(_part_key(keys.alias, number))

    def remove(self, alias: str) -> None:
        """Forget the keys of an issuer, on all nodes."""
        for key in [_SET + alias, *(_part_key(alias, number) for number in range(1, _PARTS_MAX))]:
            if self._namespace.get(key) is not None:
                self._namespace.remove(key)

    # ── Following ────────────────────────────────────────────────────────────

    def _look_at(self, keys: Sequence[str]) -> None:
        named = (_alias_of(key) for key in keys)
        changed = [alias for alias in sorted({one for one in named if one}) if self._count(alias)]
        if changed:
            for heard in self._heard:
                heard(changed)

    def _count(self, alias: str) -> bool:
        """Put a set together anew; return whether that is something else than before."""
        before = self._whole.get(alias)
        if self._namespace.get(_SET + alias) is None:
            return self._whole.pop(alias, None) is not None
        now = self._assembled(alias)
        if now is None or now == before:
            return False
        self._whole[alias] = now
        return True

    def _assembled(self, alias: str) -> IssuerKeySet | None:
        held = self._namespace.get(_SET + alias)
        try:
            head = _decode_head((held.value if held else None) or b"")
            parts = [head.part]
            for number in range(1, head.parts):
                other = self._namespace.get(_part_key(alias, number))
                more = _decode_more((other.value if other else None) or b"")
                parts.append(more.part)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            # Of a newer release, or on its way.
            return None
        document = b"".join(parts)
        if digest_of(document) != head.digest:
            return None
        return IssuerKeySet(
            alias, document, head.fetched_ms, head.max_age_ms, head.source, head.node
        )


def _cut(document: bytes) -> list[bytes]:
    starts = range(0, max(1, len(document)), _PART_BYTES_MAX)
    return [document[start : start + _PART_BYTES_MAX] for start in starts]


def _part_key(alias: str, number: int) -> str:
    return f"{_PART}{alias}/{number}"


def _alias_of(key: str) -> str:
    if key.startswith(_SET):
        return key.removeprefix(_SET)
    if key.startswith(_PART):
        return key.removeprefix(_PART).rpartition("/")[0]
    return ""
