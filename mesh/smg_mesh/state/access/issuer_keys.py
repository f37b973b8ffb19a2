"""Issuer keys: the public keys of token issuers, fetched by one node and known to all, also after a restart.

    set/PLACE     = msgpack {digest, parts, fetched_ms, max_age_ms, source, node, part}      with the first part
    part/PLACE/N  = msgpack {digest, part}                                                   the others, N from 1 on

A place is ALIAS/SOURCE, where SOURCE is a digest of where the keys were fetched: nodes whose own settings mean different
issuers by one alias, or fetch its keys elsewhere, do not write over each other, and keys of another issuer that had the
alias once never count. Nodes of earlier builds wrote to the place ALIAS, which is still read.

The values of a namespace are small, and some issuers have many keys: so a set is cut. Its parts may come in any order
and mixed with those of the set before; a set counts when all of its parts are there, and until then the one before does.
Sets of sources that nobody fetches from any more are removed by the next write of one of that alias.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.crdt.namespace import Heard, Namespace
from smg_mesh.state.access.access_records import DIGEST_BYTES, IssuerKeySet, digest_of

SET_BYTES_MAX: Final = 65_536
"""Of one issuer: more than a hundred keys of 2,048 bits."""
ALIAS_CHARS_MAX: Final = 63
SOURCE_CHARS_MAX: Final = 512
"""Of what is kept of a source to be read by people; the digest is of all of it."""
SOURCES_MAX: Final = 8
"""Of one alias: while a change of settings goes from node to node there are two."""
UNUSED_MS: Final = 31 * 86_400_000
"""Keys that were fetched longer ago are good nowhere: the longest that a setting keeps them is 30 days."""
_SOURCE_BYTES: Final = 8
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

    def get(self, alias: str, source: str) -> IssuerKeySet | None:
        """Return the newest set from that source that is whole here; None if there is none."""
        found = self._whole.get(_place_of(alias, source))
        # Earlier builds had one place for all sources.
        earlier = self._whole.get(alias)
        if earlier is None or earlier.source != source:
            return found
        return earlier if found is None or found.fetched_ms < earlier.fetched_ms else found

    def aliases(self) -> Sequence[str]:
        """Return the names of the issuers of which there is a set, sorted."""
        return sorted({one.alias for one in self._whole.values()})

    def sources(self, alias: str) -> Sequence[str]:
        """Return from where the sets of an issuer are that are whole here, sorted."""
        return sorted({one.source for one in self._whole.values() if one.alias == alias})

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
        place, digest = _place_of(keys.alias, keys.source), keys.digest
        parts = _cut(keys.document)
        before = self._whole.get(place)
        if before is None or before.digest != digest:
            # First what the head needs: whoever has that then has all, mostly.
            for number, part in enumerate(parts[1:], 1):
                self._namespace.put(_part_key(place, number), _encode(_More(digest, part)))
        head = _Head(
            digest,
            len(parts),
            keys.fetched_ms,
            keys.max_age_ms,
            keys.source[:SOURCE_CHARS_MAX],
            keys.node,
            parts[0],
        )
        self._namespace.put(_SET + place, _encode(head))
        self._take_away(place, range(len(parts), _PARTS_MAX))
        self._tidy(keys, place)

    def remove(self, alias: str) -> None:
        """Forget the keys of an issuer from all sources, on all nodes."""
        for place in self._places(alias):
            self._remove(place)

    def _tidy(self, written: IssuerKeySet, place: str) -> None:
        """Remove what was fetched from elsewhere so long ago that nobody uses it, and what is too many."""
        others = [one for one in self._places(written.alias) if one != place]
        others.sort(key=self._fetched_ms, reverse=True)
        for number, other in enumerate(others, 1):
            age_ms = written.fetched_ms - self._fetched_ms(other)
            if age_ms > UNUSED_MS or number >= SOURCES_MAX:
                self._remove(other)

    def _remove(self, place: str) -> None:
        if self._namespace.get(_SET + place) is not None:
            self._namespace.remove(_SET + place)
        self._take_away(place, range(1, _PARTS_MAX))

    def _take_away(self, place: str, numbers: range) -> None:
        for number in numbers:
            if self._namespace.get(_part_key(place, number)) is not None:
                self._namespace.remove(_part_key(place, number))

    def _places(self, alias: str) -> list[str]:
        """Return where sets of an issuer are, also what this release cannot read or is not whole."""
        keys = [held.key for held in self._namespace.items(f"{_SET}{alias}/")]
        if self._namespace.get(_SET + alias) is not None:
            keys.append(_SET + alias)
        return [key.removeprefix(_SET) for key in keys]

    def _fetched_ms(self, place: str) -> int:
        """Return when the set at a place was fetched; the youngest is what cannot be read."""
        held = self._namespace.get(_SET + place)
        head = None if held is None else _read_head(held.value)
        return _TIME_MAX_MS if head is None else head.fetched_ms

    # ── Following ────────────────────────────────────────────────────────────

    def _look_at(self, keys: Sequence[str]) -> None:
        named = {place for place in map(_place_in, keys) if place}
        changed = {_alias_of(place) for place in sorted(named) if self._count(place)}
        if changed:
            for heard in self._heard:
                heard(sorted(changed))

    def _count(self, place: str) -> bool:
        """Put a set together anew; return whether that is something else than before."""
        before = self._whole.get(place)
        if self._namespace.get(_SET + place) is None:
            return self._whole.pop(place, None) is not None
        now = self._assembled(place)
        if now is None or now == before:
            return False
        self._whole[place] = now
        return True

    def _assembled(self, place: str) -> IssuerKeySet | None:
        """Return the set at a place; None for one of a newer release, or on its way."""
        held = self._namespace.get(_SET + place)
        head = None if held is None else _read_head(held.value)
        if head is None:
            return None
        parts = [head.part]
        for number in range(1, head.parts):
            other = self._namespace.get(_part_key(place, number))
            more = None if other is None else _read_more(other.value)
            if more is None:
                return None
            parts.append(more.part)
        document = b"".join(parts)
        if digest_of(document) != head.digest:
            return None
        return IssuerKeySet(
            _alias_of(place), document, head.fetched_ms, head.max_age_ms, head.source, head.node
        )


def _read_head(value: bytes | None) -> _Head | None:
    try:
        return _decode_head(value or b"")
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _read_more(value: bytes | None) -> _More | None:
    try:
        return _decode_more(value or b"")
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _cut(document: bytes) -> list[bytes]:
    starts = range(0, max(1, len(document)), _PART_BYTES_MAX)
    return [document[start : start + _PART_BYTES_MAX] for start in starts]


def _place_of(alias: str, source: str) -> str:
    text = source.encode("utf-8", "surrogatepass")
    return f"{alias}/{blake2b(text, digest_size=_SOURCE_BYTES).hexdigest()}"


def _alias_of(place: str) -> str:
    return place.partition("/")[0]


def _part_key(place: str, number: int) -> str:
    return f"{_PART}{place}/{number}"


def _place_in(key: str) -> str:
    """Return the place that an entry belongs to; "" for one of no set."""
    if key.startswith(_SET):
        return key.removeprefix(_SET)
    if key.startswith(_PART):
        return key.removeprefix(_PART).rpartition("/")[0]
    return ""
