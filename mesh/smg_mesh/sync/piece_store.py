"""Piece store: all shared state of one node: pieces by name, and the digest over all of them.

A *piece* is a document of a namespace (`settings/17`) or a shard of a table (`sticky/3`). A caller
that changes one says so (`changed`): the digest follows, and what changed belongs on disk.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, TypeAlias

import msgspec

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.owned_registers import OwnedRegisters, Written
from smg_mesh.crdt.hybrid_clock import HybridClock
from smg_mesh.crdt.tables.lww_table import Row, Table
from smg_mesh.swim.effects import Rng
from smg_mesh.sync.document_namespace import DocumentNamespace
from smg_mesh.sync.exchange.piece_interface import PieceError, PieceState
from smg_mesh.sync.replica_effects import Count, DigestIs, Keep, Wish

_NUMBER_CHARS_MAX: Final = 6


class NamespaceState(msgspec.Struct, frozen=True):
    """State of one kind of shared state on one node; equal digests mean that the same counts."""

    name: str
    digest: str
    entries: int
    size_bytes: int
    documents: int
    epoch: int
    """The largest of its documents'; 0 for a table."""


class DocumentPiece(msgspec.Struct, frozen=True):
    """A document, which may not exist yet."""

    space: DocumentNamespace
    index: int

    @property
    def held(self) -> OwnedRegisters | None:
        """The document if it exists."""
        return self.space.held(self.index)

    @property
    def document(self) -> OwnedRegisters:
        """The document, made now if need be."""
        return self.space.document(self.index)

    def dump(self) -> bytes:
        """Return what is kept of it; b"" if it is empty."""
        document = self.held
        return b"" if document is None or document.empty else document.dump()


class ShardPiece(msgspec.Struct, frozen=True):
    """A shard of a table."""

    table: Table
    shard: int

    def dump(self) -> bytes:
        """Return what is kept of it; b"" if it is empty."""
        return self.table.dump(self.shard)


Piece: TypeAlias = DocumentPiece | ShardPiece


class PieceStore:
    """All pieces of one node."""

    def __init__(
        self,
        me: str,
        *,
        options: StateOptions,
        rng: Rng,
        clock: HybridClock,
        wall_ms: Callable[[], int],
        tell: Callable[[Wish], None],
        wrote: Callable[[str, Written], None],
        wrote_row: Callable[[str, Row], None],
    ) -> None:
        self.clock: Final = clock
        self._tell: Final = tell
        self._wall_ms: Final = wall_ms
        self._digests: dict[str, int] = {}
        self._digest = 0
        self._told_digest = bytes(8)
        self.namespaces: Final[Mapping[str, DocumentNamespace]] = {
            name: DocumentNamespace(
                name,
                me,
                documents=documents,
                options=options,
                clock=self.clock,
                rng=rng,
                wall_ms=wall_ms,
                wrote=wrote,
                full=lambda document: tell(Count("document_full", detail=document)),
            )
            for name, documents in options.documents.items()
        }

        def table_wrote(name: str) -> Callable[[Row], None]:
            return lambda row: wrote_row(name, row)

        self.tables: Final[Mapping[str, Table]] = {
            name: Table(
                name, me, shards=shards, options=options, clock=self.clock, wrote=table_wrote(name)
            )
            for name, shards in options.tables.items()
        } | {
            name: Table(
                name,
                me,
                shards=brief.shards,
                options=options,
                clock=self.clock,
                wrote=table_wrote(name),
                brief=brief,
            )
            for name, brief in options.brief_tables.items()
        }
        briefs = {name: brief.shards for name, brief in options.brief_tables.items()}
        self._shards: Final = {**options.tables, **briefs}
        self._undigested: Final = frozenset(briefs)

    # ── Finding ──────────────────────────────────────────────────────────────

    def find(self, name: str) -> Piece:
        """Return where a piece lives; PieceError for a name that cannot be."""
        kind, _, number = name.partition("/")
        if number.isascii() and number.isdigit() and len(number) <= _NUMBER_CHARS_MAX:
            index = int(number)
            space = self.namespaces.get(kind)
            if str(index) == number and space is not None and space.has(index):
                return DocumentPiece(space, index)
            if str(index) == number and index < self._shards.get(kind, 0):
                return ShardPiece(self.tables[kind], index)
        raise PieceError("name", f"{name[:64]!r} is no piece of ours")

    def document(self, name: str) -> OwnedRegisters | None:
        """Return a document that exists, None for anything else."""
        try:
            found = self.find(name)
        except PieceError:
            return None
        return found.held if isinstance(found, DocumentPiece) else None

    def documents(self) -> Iterator[OwnedRegisters]:
        """Return all documents that hold something."""
        for space in self.namespaces.values():
            for _, document in space.documents():
                if not document.empty:
                    yield document

    def names(self) -> Sequence[str]:
        """Return the names of all pieces that are not empty, sorted."""
        return sorted(self._digests)

    def holdings(self) -> list[PieceState]:
        """Return every piece that is not empty."""
        found = [
            PieceState(document.name, document.epoch, document.digest, document.size_bytes)
            for document in self.documents()
        ]
        for name, table in self.tables.items():
            found += [
                PieceState(f"{name}/{shard}", 0, digest, size_bytes)
                for shard, digest, size_bytes in table.pieces()
            ]
        return found

    # ── The digest ───────────────────────────────────────────────────────────

    @property
    def empty(self) -> bool:
        """Whether nothing is held at all."""
        return not self._digests

    def digest(self) -> bytes:
        """Return 8 bytes over all pieces."""
        return self._digest.to_bytes(8, "big")

    def digest_of(self, name: str) -> int:
        """Return what a piece adds to the digest; 0 if it is empty."""
        return self._digests.get(name, 0)

    def changed(self, name: str) -> bool:
        """Bring the digest up to date; return whether the piece has become another one. Brief tables are in none."""
        if name.partition("/")[0] in self._undigested:
            return False
        before = self._digests.pop(name, 0)
        piece = self._piece_digest(name)
        if piece:
            self._digests[name] = piece
        if piece == before:
            return False
        self._digest ^= before ^ piece
        self._tell(Keep(name))
        digest = self.digest()
        if digest != self._told_digest:
            self._told_digest = digest
            self._tell(DigestIs(digest))
        return True

    def _piece_digest(self, name: str) -> int:
        found = self.find(name)
        if isinstance(found, ShardPiece):
            digest = found.table.digest(found.shard)
            return _folded(name, 0, digest) if any(digest) else 0
        document = found.held
        if document is None or document.empty:
            return 0
        return _folded(name, document.epoch, document.digest)

    # ── All of it ────────────────────────────────────────────────────────────

    def forget(self, *, older_than_ms: int) -> None:
        """Forget everything but this node's own entries that are not older than that."""
        names = self.names()
        for space in self.namespaces.values():
            space.forget(older_than_ms=older_than_ms)
        for table in self.tables.values():
            table.clear()
        for name in names:
            self.changed(name)

    def date_again(self) -> None:
        """Write again, as of now, what a wrong clock has dated far ahead."""
        for space in self.namespaces.values():
            space.date_again()

    def expire(self) -> bool:
        """Drop rows that are over; return whether there are any left."""
        for name, table in self.tables.items():
            for shard in table.expire(self._wall_ms()):
                self.changed(f"{name}/{shard}")
        return any(len(table) for table in self.tables.values())

    def state(self) -> Mapping[str, NamespaceState]:
        """Return what is held, by name."""
        told = {name: _namespace_state(space) for name, space in self.namespaces.items()}
        # A brief table that nobody uses is not spoken of, as before there were any.
        shown = [name for name in self.tables if name not in self._undigested or self.tables[name]]
        return {**told, **{name: self._table_state(name) for name in shown}}

    def _table_state(self, name: str) -> NamespaceState:
        table = self.tables[name]
        pieces = table.pieces()
        digest = 0
        for shard, piece, _ in pieces if name not in self._undigested else ():
            digest ^= _folded(f"{name}/{shard}", 0, piece)
        size_bytes = sum(size for _, _, size in pieces)
        shown = digest.to_bytes(8, "big").hex()
        return NamespaceState(name, shown, len(table), size_bytes, len(pieces), 0)


def _namespace_state(space: DocumentNamespace) -> NamespaceState:
    documents = [document for _, document in space.documents() if not document.empty]
    return NamespaceState(
        space.name,
        space.digest().hex(),
        len(space),
        sum(document.size_bytes for document in documents),
        len(documents),
        max((document.epoch for document in documents), default=0),
    )


def _folded(name: str, epoch: int, digest: bytes) -> int:
    """Return what a piece adds to the digest of all."""
    said = f"{name}\0{epoch}\0".encode() + digest
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "big")
