"""Runs that were begun by nodes which are not there, in one store in memory that several nodes share."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.presenter import ResponsePresenter
from smg_node.dialects.responses.items.item_document import list_of
from smg_node.history.peers.peer_interface import Answer, NoPeers
from smg_node.history.ports import HistoryOptions
from smg_node.history.runs.event_codec import packed, terminal, unpacked
from smg_node.history.runs.orphan_finalizer import OrphanFinalizer
from smg_node.history.runs.orphan_recovery import LEASE_US, OrphanRecovery
from smg_node.history.runs.predecessors import Predecessors
from smg_storage.ids import new_id
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access, Status, StoredResponse
from smg_storage.store import HistoryStore
from support.answers.generations import text, thought, whole
from support.answers.responses import NOW_MS, THREAD, ask_of, checked, items_from
from support.store_contract.maker import Clock

STORY = whole(thought("hm", "m"), text("so ", "far ", "so good", block=1))


class SharedMemory(MemoryStore):
    """A store that all nodes see."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(Bounds(), clock)
        self.is_shared = True

    @property
    def shared(self) -> bool:
        return self.is_shared


class FakePeers(NoPeers):
    """The others: who is gone, and what they answer."""

    def __init__(self) -> None:
        self.since: dict[str, int] = {}
        self.doubted: set[str] = set()
        self.answers: dict[str, Answer] = {}

    def answer(self, topic: str, reply: Answer) -> None:
        self.answers[topic] = reply

    def gone(self) -> Mapping[str, int]:
        return self.since

    def known(self) -> Mapping[str, str]:
        return dict.fromkeys(self.since, "dead") | dict.fromkeys(sorted(self.doubted), "suspect")


class NoRuns(dict[tuple[str, str], Any]):
    """The runs of a process, none to begin with."""

    def find(self, tenant: str, response_id: str) -> Any:
        return self.get((tenant, response_id))


@dataclass
class Node:
    """One process: what it needs to adopt."""

    name: str
    lives: Predecessors
    adopter: OrphanRecovery
    runs: NoRuns
    peers: FakePeers


@dataclass
class OrphanWorld:
    """Nodes and the store that they share. `now_s` is a clock of its own: monotonic."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    access: Access = field(default_factory=lambda: Access(tenant="acme"))
    living: list[str] = field(default_factory=list)
    chance: Random = field(default_factory=lambda: Random(3))
    now_s: float = 1_000.0

    def __post_init__(self) -> None:
        self.store = SharedMemory(self.clock)

    def node(
        self,
        name: str,
        *,
        store: HistoryStore | None = None,
        disk: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> Node:
        """Start a process of this name; the folder `disk` is what it shares with earlier ones, its name if empty."""
        seen = self.store if store is None else store
        lives = Predecessors(self.folder / (disk or name), name, chance=self.chance)
        runs, peers = NoRuns(), FakePeers()
        adopter = OrphanRecovery(
            seen,
            runs,
            OrphanFinalizer(seen, HistoryOptions(), now_us=self.clock),
            lives,
            peers=peers,
            living=lambda: self.living,
            now_us=self.clock,
            now_s=lambda: self.now_s,
            sleep=sleep,
        )
        if name not in self.living:
            self.living.append(name)
        return Node(name, lives, adopter, runs, peers)

    def pass_s(self, seconds: float) -> None:
        """Let time go by, on both clocks."""
        self.now_s += seconds
        self.clock.now_us += round(seconds * 1_000_000)

    # ── Runs ─────────────────────────────────────────────────────────────────

    async def run_of(
        self,
        owner: str,
        *,
        events: Sequence[Event] = STORY,
        cut: int | None = None,
        blobs: int = 2,
        leased_s: float = 15,
        **ask: Any,
    ) -> StoredResponse:
        """Lay down a run that told `cut` events (all but the terminal one if None), in blobs of so many events."""
        asked = ask_of(**{"background": True, **ask})
        items = items_from(
            [{"id": f"msg_{self.chance.getrandbits(64):x}", "role": "user", "content": "hi"}]
        )
        response_id = new_id("resp", THREAD, now_ms=NOW_MS, chance=self.chance)
        teller = ResponsePresenter(
            asked, response_id=response_id, thread=THREAD, created_s=5, now_ms=NOW_MS, chance=self.chance
        )  # fmt: skip
        row = StoredResponse(
            id=response_id,
            status=Status.QUEUED,
            model="m",
            created_us=self.clock.now_us,
            input=list_of(items),
            response=teller.response(),
            background=True,
            owner=owner,
            lease_token=1,
            lease_until_us=self.clock.now_us + round(leased_s * 1_000_000),
            conversation_id=asked.conversation_id,
        )
        await self.store.store_response(self.access, row)
        told = [*teller.begin(queued=True), *teller.tell(events)]
        assert teller.outcome is not None
        told = [*told, *teller.close(teller.outcome)][:-1]
        kept = told if cut is None else told[:cut]
        portions = [kept[at : at + blobs] for at in range(0, len(kept), blobs)]
        await self.store.append_events(
            self.access,
            row.id,
            [packed(portion) for portion in portions],
            expires_us=HistoryOptions().log_until_us(row.created_us),
            token=1,
        )
        return row

    async def row(self, row: StoredResponse) -> StoredResponse:
        found = await self.store.get_response(self.access, row.id)
        assert found is not None
        return found

    async def log(self, row: StoredResponse) -> list[NumberedEvent]:
        blobs = await self.store.read_events(self.access, row.id, after=-1, limit=999)
        return [event for blob in blobs for event in unpacked(blob)]

    async def is_untouched(self, row: StoredResponse) -> bool:
        return await self.row(row) == row

    async def ended(self, row: StoredResponse) -> dict[str, Any]:
        """Return the object of a run that has ended; its stream is whole, and comes to the same object."""
        final, log = await self.row(row), await self.log(row)
        assert final.status.is_final
        assert final.background
        stream = [*log, terminal(final.response, len(log))]
        told = checked(stream)
        shown: dict[str, Any] = json.loads(final.response)
        assert shown["status"] == final.status.value == told.status
        assert json.loads(stream[-1].data)["response"] == shown
        before: dict[str, Any] = json.loads(row.response)
        changed = {"status", "output", "error"}
        assert {k: v for k, v in shown.items() if k not in changed} == {
            k: v for k, v in before.items() if k not in changed
        }
        assert await self.store.orphan_runs(now_us=1 << 62, limit=9, timeout_s=9) == []
        return shown

    async def beaten(self, row: StoredResponse) -> StoredResponse:
        """Renew the lease of a run, as its owner does."""
        lease = await self.store.claim_run(
            self.access, row.id, row.owner, now_us=row.lease_until_us, until_us=0
        )
        assert lease is not None
        renewed = await self.store.renew_run(
            self.access, lease, until_us=self.clock.now_us + LEASE_US
        )
        return replace(
            row, lease_token=lease.token, lease_until_us=renewed.until_us, version=row.version + 2
        )
