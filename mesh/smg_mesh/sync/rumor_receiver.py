"""Rumor receiver: applies rumors about shared state: updates of
documents, registers, rows of tables.

Rumors come from members, in any order and more than once; what makes no sense is counted and has no
other effect.
"""

from collections.abc import Callable
from typing import Final

from smg_mesh.crdt.documents.document import DocumentError
from smg_mesh.crdt.registers.ephemeral_registers import Registers
from smg_mesh.swim.messages import News
from smg_mesh.sync.change_spreader import DOCUMENT, Spreader, Update, UpdateError, decode_update
from smg_mesh.sync.exchange.piece_interface import PieceError
from smg_mesh.sync.piece_store import PieceStore, ShardPiece
from smg_mesh.sync.replica_effects import Count, Wish
from smg_mesh.sync.upkeep_schedule import Caretaker

REGISTER: Final = "e."
TABLE: Final = "t."
"""Kinds of news, followed by the register's kind or the table's name."""


class RumorReceiver:
    """Receiver of rumors about shared state."""

    def __init__(
        self,
        me: str,
        shelf: PieceStore,
        registers: Registers,
        *,
        spreader: Spreader,
        caretaker: Caretaker,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        tell: Callable[[Wish], None],
    ) -> None:
        self._me: Final = me
        self._shelf: Final = shelf
        self._registers: Final = registers
        self._spreader: Final = spreader
        self._caretaker: Final = caretaker
        self._now_ms: Final = now_ms
        self._wall_ms: Final = wall_ms
        self._tell: Final = tell

    def hear(self, news: News) -> None:
        """Take a rumor of another node."""
        if news.origin == self._me:
            return
        if news.kind == DOCUMENT:
            self._update(news)
        elif news.kind.startswith(REGISTER):
            self._register(news)
        elif news.kind.startswith(TABLE):
            self._row(news)

    def holds(self, name: str, update: Update) -> bool:
        """Return whether a document has that update and everything before it."""
        document = self._shelf.document(name)
        return document is not None and document.has(update.epoch, update.client, update.upto)

    def _update(self, news: News) -> None:
        name = news.key.partition(":")[0]
        try:
            update = decode_update(news.content)
            found = self._shelf.find(name)
            if isinstance(found, ShardPiece):
                raise UpdateError("a table has rows")
            heard = found.document.hear(update.update, update.client, update.upto, update.epoch)
        except (UpdateError, PieceError, DocumentError):
            self._tell(Count("state_refused", detail="update"))
            return
        if heard.gap:
            self._spreader.gap(name, news.origin, update)
        # Also what does not count changes what is held: a loser, or a loser that is gone.
        if self._shelf.changed(name):
            self._caretaker.soon(name)
        found.space.changed(found.document, heard.changed)

    def _register(self, news: News) -> None:
        kind = news.kind.removeprefix(REGISTER)
        taken = self._registers.hear(
            news.origin, kind, news.key, news.content, now_ms=self._now_ms()
        )
        if not taken:
            self._tell(Count("state_refused", detail="register"))

    def _row(self, news: News) -> None:
        name = news.kind.removeprefix(TABLE)
        table = self._shelf.tables.get(name)
        key = None if table is None else table.hear(news.content, self._wall_ms())
        if table is not None and key is not None:
            self._caretaker.keep_going()
            self._shelf.changed(f"{name}/{table.shard_of(key)}")
