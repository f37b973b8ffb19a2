"""Shared session: what all processes use with a server, credential, tenant and thread, as one process sees it.

The record is written when a session is agreed on or taken over, again when an eighth of its time has passed in use, and
by whoever has the stream by GET. The last process that used a session ends it. Processes that the server lets reach
different replicas would take each other's session away again and again: one that was given two in a row which are
unknown where it is sent goes on by itself. Pure.
"""

from typing import Final

import msgspec

from smg_node.mcp.revisions import revision_named
from smg_node.mcp.session.opening import Opened, Transport, Verdict
from smg_node.mcp.session.session import RequestIds, Session
from smg_node.mcp.session.session_record import SessionRecord, SessionRecords

HOLD_MS: Final = 120_000
"""So long a process has the stream without saying so again: one that died with its node's life going on is waited for."""
RENEW_S: Final = 60.0
_TOUCHES: Final = 8
_REJECTED_MAX: Final = 2
_REJECTED_WITHIN_MS: Final = 60_000
"""A server that is started anew now and then is not scattered by that."""
APART_MS: Final = 3_600_000
"""After so long a process that goes on by itself tries again."""


class SharedSession:
    """Session under one key of the records. Its times are milliseconds; `idle_ms` is how long it may be unused."""

    def __init__(self, records: SessionRecords, key: str, idle_ms: int) -> None:
        self._records = records
        self._key = key
        self._idle_ms = idle_ms
        self._last: SessionRecord | None = None
        """What was seen or written last."""
        self._changes = 0
        self._rejected = 0
        """How many sessions in a row were taken over and not known to the server."""
        self._rejected_ms = 0
        self._apart_until_ms = 0

    @property
    def apart(self) -> bool:
        """Whether this process goes on by itself."""
        return self._records.now_ms() < self._apart_until_ms

    def find(self) -> SessionRecord | None:
        """Return the record that counts."""
        if self.apart:
            return None
        kept = self._records.get(self._key)
        if kept is None:
            return None
        self._last = kept.record
        return kept.record

    def adopted(self, record: SessionRecord, ids: RequestIds) -> Opened | None:
        """Return a session that another process opened, as one that is open here; None for one this version cannot use."""
        revision = revision_named(record.revision)
        if revision is None or revision.modern:
            return None
        session = Session(revision, ids, by_http=True)
        session.session_id = record.id
        session.scattered = record.scattered
        session.adopted = True
        session.facts.capabilities = {"tools": {"listChanged": record.lists}}
        self._changes = record.changes
        self._write(msgspec.structs.replace(record, user=self._records.me), self._idle_ms)
        return Opened(session, Verdict(Transport.HTTP, revision), handshake=False)

    def agreed(self, session: Session, *, lists: bool) -> None:
        """Let the others know a session that was opened here."""
        before = self._last.changes if self._last is not None else 0
        self._changes = before
        record = SessionRecord(
            session.session_id,
            session.revision.name,
            self._records.me,
            lists,
            session.scattered,
            changes=before,
        )
        self._write(record, self._idle_ms)

    def used(self, session: Session, *, lists: bool) -> None:
        """Put the end of the record off, where an eighth of its time has passed, or where there is none any more."""
        if session.known:
            self._rejected = 0 if session.adopted else self._rejected
        if self.apart:
            return
        kept = self._records.get(self._key)
        if kept is None:
            self.agreed(session, lists=lists)
            return
        record, now_ms = kept.record, self._records.now_ms()
        if record.id != session.session_id:
            return
        late = kept.until_ms - now_ms <= self._idle_ms * (_TOUCHES - 1) // _TOUCHES
        if late or record.scattered != session.scattered:
            me, scattered = self._records.me, session.scattered or record.scattered
            session.scattered = scattered
            self._write(
                msgspec.structs.replace(record, user=me, scattered=scattered), self._idle_ms
            )

    def forgotten(self, session: Session) -> None:
        """Take away the record of a session that the server does not know."""
        if session.adopted and not session.known and session.session_id:
            now_ms = self._records.now_ms()
            soon = now_ms - self._rejected_ms <= _REJECTED_WITHIN_MS
            self._rejected = self._rejected + 1 if soon else 1
            self._rejected_ms = now_ms
            if self._rejected >= _REJECTED_MAX:
                self._rejected, self._apart_until_ms = 0, now_ms + APART_MS
        elif session.known:
            self._rejected = 0
        kept = self._records.get(self._key)
        if kept is not None and kept.record.id == session.session_id and not self.apart:
            self._records.remove(self._key)

    # ── The stream by GET ────────────────────────────────────────────────────

    def may_listen(self, session: Session) -> bool:
        """Whether nobody else has the stream of that session, as far as is known."""
        record = self.find()
        if record is None or record.id != session.session_id:
            return True
        holder, me = record.holder, self._records.me
        over = record.held_until_ms <= self._records.now_ms()
        return holder in ("", me) or over or not self._records.lives(holder)

    def hold(self, session: Session, *, on: bool = True) -> None:
        """Let the others know that this process has the stream, or has it no more; the record's end stays as it is."""
        record = self.find()
        me = self._records.me
        if record is None or record.id != session.session_id or (not on and record.holder != me):
            return
        until_ms = self._records.now_ms() + HOLD_MS if on else 0
        held = msgspec.structs.replace(
            record, holder=me if on else "", held_until_ms=until_ms, changes=record.changes
        )
        self._write(held, 1)

    def tell_change(self, session: Session) -> None:
        """Let the others know that the list of tools has changed; the record's end stays as it is."""
        record = self.find()
        if record is not None and record.id == session.session_id:
            self._changes = record.changes + 1
            self._write(msgspec.structs.replace(record, changes=self._changes), 1)

    def changed(self) -> bool:
        """Whether another process heard since the last time that the list of tools changed."""
        record = self.find()
        if record is None or record.changes == self._changes:
            return False
        self._changes = record.changes
        return True

    # ── Its end ──────────────────────────────────────────────────────────────

    def ends(self, session: Session, *, leaving: bool) -> bool:
        """Whether the session is to be ended at the server, now that this process does not use it any more.

        `leaving`: the process ends; others go on with the session, if there are any.
        """
        if self.apart:
            return True
        me, last = self._records.me, self._last
        kept = self._records.get(self._key)
        if kept is not None and kept.record.id == session.session_id:
            user, alone = kept.record.user, not self._records.has_others()
            # Where there is nobody else, nobody else ends it, however this process comes to let go of it.
            if not alone or (user != me and (leaving or self._records.lives(user))):
                return False
            self._records.remove(self._key)
            return True
        if last is None or last.id != session.session_id:
            return not session.adopted
        return last.user == me or not self._records.lives(last.user)

    def lingers(self, session: Session) -> bool:
        """Whether others may go on with a session that this process used last, and ends once they cannot any more."""
        kept = None if self.apart else self._records.get(self._key)
        if kept is None or kept.record.id != session.session_id:
            return False
        return kept.record.user == self._records.me and self._records.has_others()

    def left_s(self) -> float:
        """Return how long others may still go on by the record, in seconds; 0 for no record, or no others."""
        kept = self._records.get(self._key) if self._records.has_others() else None
        # As long as there is a record, it counts: also in the very moment of its end.
        return 0.0 if kept is None else max(0.001, (kept.until_ms - self._records.now_ms()) / 1000)

    def _write(self, record: SessionRecord, life_ms: int) -> None:
        if self._records.put(self._key, record, life_ms):
            self._last = record
