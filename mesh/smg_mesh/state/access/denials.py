"""Denials: whose tokens are refused on all nodes, each until its end.

    deny/ALIAS/DIGEST = msgpack {subject, before_ms, until_ms, made_ms}        the digest is of the subject

An operator denies a subject of an issuer that told nobody yet that its tokens are void: somebody left, a token leaked.
With `before_ms` only tokens that were issued earlier are refused, so that whoever signs in again is let in. An entry
ends by itself: no token lives for ever.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.crdt.entry import Held
from smg_mesh.crdt.namespace import Heard, Namespace, StateError
from smg_mesh.state.access.access_records import Denial
from smg_mesh.state.unknown_versions import Unreadable, unreadable

DENIALS_MAX: Final = 10_000
"""Of the whole cluster, those that are over too; one takes about 200 bytes on every node."""
SUBJECT_CHARS_MAX: Final = 1_024
"""OpenID Connect allows 255; some issuers do not know that."""
_HEAD: Final = "deny/"
_TIME_MAX_MS: Final = (1 << 53) - 1
_DIGEST_BYTES: Final = 16

_Time: TypeAlias = Annotated[int, Meta(ge=0, le=_TIME_MAX_MS)]


class _Words(msgspec.Struct, frozen=True):
    subject: Annotated[str, Meta(min_length=1, max_length=SUBJECT_CHARS_MAX)]
    until_ms: _Time
    before_ms: _Time = 0
    made_ms: _Time = 0


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Words).decode


class Denials:
    """All denials, as this node reads and writes them. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace: Final = namespace
        self._by_subject: dict[tuple[str, str], Denial] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self._strange: dict[str, Unreadable] = {}
        self._heard: list[Heard] = []
        self._look_at([held.key for held in namespace.items(_HEAD)])
        namespace.watch(self._look_at)

    # ── Reading ──────────────────────────────────────────────────────────────

    def get(self, alias: str, subject: str) -> Denial | None:
        """Return what is said of a subject, also what is over; None if nothing is."""
        return self._by_subject.get((alias, subject))

    def all(self) -> Sequence[Denial]:
        """Return all, those that are over too, sorted by issuer and subject."""
        return [self._by_subject[at] for at in sorted(self._by_subject)]

    def unreadable(self) -> Sequence[Unreadable]:
        """Return what this version cannot read, sorted by key; it is kept and passed on, and refuses nobody here."""
        return [self._strange[key] for key in sorted(self._strange)]

    def watch(self, heard: Heard) -> None:
        """Tell `heard` the aliases of which a denial came, changed or went. It may read and must not write."""
        self._heard.append(heard)

    def __len__(self) -> int:
        return len(self._by_subject)

    # ── Writing ──────────────────────────────────────────────────────────────

    def put(self, denial: Denial, *, wall_ms: int) -> None:
        """Refuse a subject's tokens everywhere, in place of what was said of it; ValueError for what no node would read,
        StateError "full". Those that are over make room.
        """
        if "/" in denial.alias or not denial.alias:
            raise ValueError(f"no name of an issuer: {denial.alias[:64]!r}")
        content = _encoded(denial)
        key = _key(denial.alias, denial.subject)
        if self._namespace.get(key) is None and len(self._by_subject) >= DENIALS_MAX:
            self._tidy(wall_ms)
            if len(self._by_subject) >= DENIALS_MAX:
                raise StateError("full", f"there are {DENIALS_MAX} denials; no more fit")
        self._namespace.put(key, content)

    def remove(self, alias: str, subject: str) -> Denial:
        """Refuse them no longer, and return what was said; LookupError if nothing was."""
        denial = self._by_subject[alias, subject]
        self._namespace.remove(_key(alias, subject))
        return denial

    def _tidy(self, wall_ms: int) -> None:
        for denial in self.all():
            if wall_ms >= denial.until_ms:
                self._namespace.remove(_key(denial.alias, denial.subject))

    # ── Following ────────────────────────────────────────────────────────────

    def _look_at(self, keys: Sequence[str]) -> None:
        aliases: dict[str, None] = {}
        for key in keys:
            if not key.startswith(_HEAD):
                continue
            aliases[key.split("/")[1]] = None
            self._strange.pop(key, None)
            if (place := self._keys.pop(key, None)) is not None:
                self._by_subject.pop(place, None)
            held = self._namespace.get(key)
            if held is not None:
                self._take(held)
        if aliases:
            for heard in self._heard:
                heard(sorted(aliases))

    def _take(self, held: Held) -> None:
        alias = held.key.split("/")[1]
        try:
            words = _decode(held.value or b"")
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            self._strange[held.key] = unreadable(held, "value", str(error))
            return
        if held.key != _key(alias, words.subject):
            self._strange[held.key] = unreadable(held, "key", "of another subject")
            return
        denial = Denial(alias, words.subject, words.until_ms, words.before_ms, words.made_ms)
        self._by_subject[alias, words.subject] = denial
        self._keys[held.key] = (alias, words.subject)


def _encoded(denial: Denial) -> bytes:
    said = msgspec.structs.asdict(denial)
    del said["alias"]
    try:
        return _encode(msgspec.convert(said, _Words))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from error


def _key(alias: str, subject: str) -> str:
    digest = blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
    return f"{_HEAD}{alias}/{digest.hexdigest()}"
