"""Health verdicts: what the nodes that probe a worker say of it: up or down, and why.

    register v/N = msgpack [[up, reason, short ids end to end, [other ids]], …]

One register holds 68 verdicts, because most are alike. A verdict that changes is said at once and
again a second and five seconds later; the quiet ones are repeated seldom, all of them together within a
budget. A verdict holds while its node comes to it again and again, and what a dead node said is gone ten
seconds later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from smg_mesh.crdt.deadline_heap import Deadlines
from smg_mesh.crdt.registers.register_codec import REGISTER_BYTES_MAX
from smg_mesh.state.workers.statement_reader import Statements
from smg_mesh.state.workers.statement_writer import Pace, StatementWriter
from smg_mesh.state.workers.worker_ids import (
    WORKER_ID_CHARS_MAX,
    pack_ids,
    packed_bytes,
    unpack_ids,
)
from smg_mesh.sync.bound_views import BoundRegisters

PACE: Final = Pace(
    apart_ms=250, apart_max_ms=2_000, repeat_ms=1_000, repeat_last_ms=10_000, bytes_per_s=1_024
)
"""Small fleets are repeated every ten seconds; 10,000 workers and three nodes take minutes for a round."""
REASON_CHARS_MAX: Final = 40

_KIND: Final = "v"
_ROOM_BYTES: Final = 408
"""Of 68 workers; the rest is for the heads of the groups: four reasons usually find room."""

_Said: TypeAlias = tuple[bool, str]
Heard: TypeAlias = Callable[[Sequence[str]], None]
"""Hears of workers about which somebody says something else than before, sorted."""


class _Group(msgspec.Struct, frozen=True, array_like=True):
    """Workers of which the same is said."""

    up: bool
    reason: str
    short: bytes
    others: list[str]


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(list[_Group])


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict of one node on a worker, and how long ago it was heard."""

    node: str
    up: bool
    reason: str
    age_ms: int


class Verdicts:
    """This node's verdicts and those of the others."""

    def __init__(self, registers: BoundRegisters, me: str) -> None:
        self._registers: Final = registers
        self._me: Final = me
        self._own_ms: dict[str, int] = {}
        """When this node last came to its verdict."""
        self._lapse: Final[Deadlines[str, int]] = Deadlines()
        self._watchers: list[Heard] = []
        self._heard: Final = Statements(
            registers,
            _KIND,
            me,
            decode=decode_verdicts,
            changed=lambda worker_id, before, after: None,
            settled=self._tell,
        )
        self._sheets: Final[StatementWriter[_Said]] = StatementWriter(
            registers,
            _KIND,
            encode=encode_verdicts,
            item_bytes=packed_bytes,
            room_bytes=_ROOM_BYTES,
            pace=PACE,
            speakers=lambda: self._heard.speakers + 1,
        )

    # ── Saying ───────────────────────────────────────────────────────────────

    def publish(
        self, worker_id: str, *, up: bool, reason: str = "", ttl_ms: int | None = None
    ) -> int | None:
        """Say that a worker is up or down; to say the same as before costs nothing.

        The verdict lapses, here and elsewhere, unless it is published again within `ttl_ms`; None: it holds as
        long as this node lives. Returns when to call `refresh`. A long reason is cut.
        """
        if not 0 < len(worker_id) <= WORKER_ID_CHARS_MAX:
            raise ValueError(f"{worker_id[:80]!r} is no worker")
        now_ms = self._own_ms[worker_id] = self._registers.now_ms()
        if ttl_ms is None:
            self._lapse.forget(worker_id)
        else:
            self._lapse.put(worker_id, now_ms + ttl_ms)
        changed = self._sheets.put(worker_id, (up, reason[:REASON_CHARS_MAX]))
        due_ms = self.refresh()
        if changed:
            self._tell([worker_id])
        return due_ms

    def forget(self, worker_id: str) -> int | None:
        """Say nothing of a worker any more: another node probes it, or it is no more."""
        self._withdraw(worker_id)
        return self.refresh()

    def refresh(self) -> int | None:
        """Say what waits or would lapse; return when to call again, None without any verdict."""
        now_ms = self._registers.now_ms()
        while (first := self._lapse.first()) is not None and first[0] <= now_ms:
            self._withdraw(first[1])
        due_ms = self._sheets.say()
        if first is None or due_ms is None:
            return due_ms
        self._registers.wake(first[0])
        return min(due_ms, first[0])

    def _withdraw(self, worker_id: str) -> None:
        if self._sheets.drop(worker_id):
            del self._own_ms[worker_id]
            self._lapse.forget(worker_id)
            self._tell([worker_id])

    # ── Hearing ──────────────────────────────────────────────────────────────

    def of(self, worker_id: str) -> Sequence[Verdict]:
        """Return what all nodes say of a worker, this one too, sorted by node."""
        now_ms = self._registers.now_ms()
        found: list[Verdict] = []
        for node, said in self._heard.about(worker_id).items():
            up, reason = said.values[worker_id]
            found.append(Verdict(node, up, reason, max(0, now_ms - said.register.heard_ms)))
        own = self._sheets.get(worker_id)
        if own is not None:
            found.append(Verdict(self._me, *own, max(0, now_ms - self._own_ms[worker_id])))
        found.sort(key=lambda verdict: verdict.node)
        return found

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of every change from now on. It may read and must not publish."""
        self._watchers.append(heard)

    @property
    def garbage(self) -> int:
        """Registers that made no sense."""
        return self._heard.garbage

    def _tell(self, worker_ids: list[str]) -> None:
        told = sorted(worker_ids)
        for heard in self._watchers:
            heard(told)


def encode_verdicts(said: Mapping[str, _Said]) -> bytes:
    """Return the content of a register; reasons that find no room are left out, the rarest first."""
    groups: dict[_Said, list[str]] = {}
    for worker_id, verdict in said.items():
        groups.setdefault(verdict, []).append(worker_id)
    while True:
        content = _encoder.encode(
            [(up, reason, *pack_ids(ids)) for (up, reason), ids in sorted(groups.items())]
        )
        explained = [verdict for verdict in sorted(groups) if verdict[1]]
        if len(content) <= REGISTER_BYTES_MAX or not explained:
            return content
        rarest = min(explained, key=lambda verdict: len(groups[verdict]))
        groups.setdefault((rarest[0], ""), []).extend(groups.pop(rarest))


def decode_verdicts(content: bytes) -> Mapping[str, _Said]:
    """Return what a register says; ValueError for anything else."""
    try:
        groups = _decoder.decode(content)
    except RecursionError as error:
        raise ValueError("too deep") from error
    said: dict[str, _Said] = {}
    for group in groups:
        verdict = (group.up, group.reason[:REASON_CHARS_MAX])
        for worker_id in unpack_ids(group.short, group.others):
            said[worker_id] = verdict
    return said
