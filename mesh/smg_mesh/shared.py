"""Shared state, the front door: one node's copy of what all share, its disk, its typed views.

    shared = Shared(name, data_dir=…, options=…, rng=…, wall_ms=…, monotonic_s=…)
    await shared.open()          # what an earlier life kept is here; now it may be written to
    await shared.run()           # a task of the caller's: keeps, tidies, until cancelled
    await shared.close()         # the last save

A node with a mesh hands it to the mesh, which opens, runs and closes it, and carries what it says to the others. A node
alone does so itself. Both keep it in the same data dir: a node that was alone brings what it has when it joins others,
and has what they had when it is alone again. Views may be taken at once; reading and writing begins when it is open.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from smg_mesh.config import StateOptions
from smg_mesh.crdt.entry import Entry, Held
from smg_mesh.crdt.namespace import StateError
from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Row
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.io.blocking_threads import Threads
from smg_mesh.io.counters import Counters
from smg_mesh.io.rights.rights import Rights
from smg_mesh.io.rights.rights_queue import RightsQueue
from smg_mesh.io.rights.wakeup import WakeupTimer
from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_mesh.io.security.secret_vault import Vault
from smg_mesh.io.shared_state.counter_names import NOTES
from smg_mesh.io.shared_state.hint_transport import Hints
from smg_mesh.io.shared_state.state_events import StateNews
from smg_mesh.io.shared_state.state_interface import Gossip
from smg_mesh.io.shared_state.state_keeper import Keeper
from smg_mesh.io.shared_state.state_upkeep import StateUpkeep
from smg_mesh.state.access.access_state import AccessDefinition, AccessState, Denial, IssuerKeySet
from smg_mesh.state.api_keys import FOREIGN, KeyRecord, Keys
from smg_mesh.state.audit_log import Audit, AuditRow
from smg_mesh.state.limits.limits_view import LimitError, LimitRule, LimitsView, RuleValue
from smg_mesh.state.namespace_keys import TOOL_SERVER
from smg_mesh.state.prober_selection import probers
from smg_mesh.state.prompt_caches import CacheRow, PromptCaches
from smg_mesh.state.providers import PROVIDER, ROUTE, ProvidersView, sealed_in, sealed_text
from smg_mesh.state.running_config import Running
from smg_mesh.state.settings import SettingsView, SettingValue
from smg_mesh.state.tool_sessions import SESSION_BYTES_MAX, SessionRow, ToolSessions
from smg_mesh.state.vendor_rates import SharedBucket, SharedPause, VendorRates, merged_rows
from smg_mesh.state.workers.health_verdicts import Verdict, Verdicts
from smg_mesh.state.workers.shared_load import LoadView
from smg_mesh.state.workers.sticky_keys import Sticky
from smg_mesh.state.workers.worker_registry import Listed, WorkerRecord, WorkerRegistry, WorkerSpec
from smg_mesh.swim.boot_numbers import first_boot
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import News
from smg_mesh.sync.exchange.piece_interface import Pieces
from smg_mesh.sync.join_progress import Arrival
from smg_mesh.sync.replica import NamespaceState, Replica
from smg_mesh.sync.replica_effects import (
    Count,
    DigestIs,
    Keep,
    OpenExchanges,
    SpreadRumor,
    Wake,
    Wish,
)
from smg_mesh.sync.rumor_receiver import REGISTER

__all__ = [
    "FOREIGN", "NOTES", "PROVIDER", "ROUTE", "SESSION_BYTES_MAX", "TOOL_SERVER", "AccessDefinition", "AccessState", "Audit", "AuditRow",
    "CacheRow", "CarriedSecrets", "Denial", "Entry", "Held", "Hints", "IssuerKeySet", "KeyRecord", "Keys",
    "LimitError", "LimitRule", "LimitsView", "Listed", "LoadView", "NamespaceState", "PromptCaches", "ProvidersView",
    "Report", "Rights", "RightsQueue", "Row", "RuleValue", "Running", "SessionRow", "SettingValue", "SettingsView",
    "Share", "Shared", "SharedBucket", "SharedPause", "StateError", "Sticky", "ToolSessions", "VendorRates",
    "Verdict", "Verdicts", "WorkerRecord", "WorkerRegistry", "WorkerSpec", "merged_rows", "probers", "sealed_in",
    "sealed_text",
]  # fmt: skip

REFRESH_SOON_MS: Final = 200
"""After this node said something of itself, when it has to say it again is planned."""
_LIBRARY: Final = "pycrdt"
"""Used by `crdt.document` only; importing it takes 50 to 90 ms."""

_log: Final = logging.getLogger("smg_mesh.shared")


class Shared:
    """State that this node shares. `before` are its data dirs under other circumstances."""

    def __init__(
        self,
        name: str,
        *,
        data_dir: Path | None,
        options: StateOptions,
        rng: Rng,
        wall_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        before: Sequence[Path] = (),
    ) -> None:
        self.name: Final = name
        self.absent_ms: int | None = None
        """For how long this node was not running; None if it never was."""
        self._rng: Final = rng
        self._wall_ms: Final = wall_ms
        self._monotonic_s: Final = monotonic_s
        self._counters: Final = Counters()
        self._pulse: Final = WakeupTimer(
            self._beat, monotonic_s=monotonic_s, counters=self._counters
        )
        self._replica: Final = Replica(
            name, 0, options=options, rng=rng, now_ms=self._now_ms, wall_ms=wall_ms, tell=self._take
        )
        self._keeper: Final = self._made_keeper(data_dir, before, options)
        self._arrival: Final = Arrival(name, grace_ms=options.join_grace_ms, now_ms=self._now_ms)
        self._vault: Final = Vault()
        self.carried: Final = CarriedSecrets(self.carried_keys)
        """Seals what clients carry."""
        self._gossip: Gossip | None = None
        self._arrived = False
        self._began_ms = self._boot = 0
        self._watching: list[Callable[[Sequence[str]], None]] = []
        self._waiting: list[Callable[[], None]] = []
        self._news: Final = StateNews(now_ms=self._now_ms)

        self.registers: Final = self._replica.registers
        self.namespace: Final = self._replica.namespace
        self.workers: Final = WorkerRegistry(self._replica.namespace("workers"), name)
        self.settings: Final = SettingsView(self._replica.namespace("settings"), name)
        self.providers: Final = ProvidersView(self._replica.namespace("providers"), name)
        self.limits: Final = LimitsView(self._replica.namespace("limits"), wall_ms=wall_ms)
        self.keys: Final = Keys(self._replica.namespace("keys"))
        self.access: Final = AccessState(self._replica.namespace("access"))
        self.discovery: Final = SettingsView(self._replica.namespace("discovery"), name)
        self.audit: Final = Audit(self._replica.namespace("audit"), name)
        self.sticky: Final = Sticky(self._replica.table("sticky"))
        self.prompt_caches: Final = PromptCaches(self._replica.table("prompt_caches"))
        self.tool_sessions: Final = ToolSessions(self._replica.table("tool_sessions"))
        self.load: Final = LoadView(self.registers, name)
        self.verdicts: Final = Verdicts(self.registers, name)
        self.running: Final = Running(self.registers, name, self.living, self._refuted)
        self.rates: Final = VendorRates(self.registers, name, wall_ms=wall_ms)
        self.hints: Final = Hints(options, now_ms=self._now_ms, counters=self._counters)
        self.rights: Final = self._made_rights(data_dir)
        self._caring: Final = self._made_caring()

    def _made_caring(self) -> StateUpkeep:
        return StateUpkeep(
            self.name,
            self.workers,
            self.providers,
            self.audit,
            self._vault,
            self._replica,
            counters=self._counters,
            wall_ms=self._wall_ms,
            known=lambda: () if self._gossip is None else self._gossip.known(),
        )

    def _made_rights(self, data_dir: Path | None) -> Rights:
        rights = Rights(
            self.name,
            limits=self.limits,
            folder=None if data_dir is None else data_dir / "rights",
            rng=self._rng,
            counters=self._counters,
            wall_ms=self._wall_ms,
            monotonic_s=self._monotonic_s,
        )
        self.limits.watch(lambda _keys: rights.changed())
        return rights

    def _made_keeper(
        self, data_dir: Path | None, before: Sequence[Path], options: StateOptions
    ) -> Keeper:
        return Keeper(
            None if data_dir is None else data_dir / "state",
            pieces=self._replica,
            before=[other / "state" for other in before],
            save_apart_ms=options.save_apart_ms,
            absent_max_ms=options.removed_keep_ms,
            counters=self._counters,
            wall_ms=self._wall_ms,
        )

    # ── Its life ─────────────────────────────────────────────────────────────

    async def open(self, boot: int | None = None) -> None:
        """Read what was kept, and begin the life `boot`: one larger than the last if there is no mesh to say. Does not
        fail: what cannot be read is reported, counted, and done without.
        """
        self._began_ms = self._now_ms()
        if self._gossip is not None:
            # There will be documents, and the loop must not stand still for it when peers talk already.
            await Threads("library", threads_max=1).start(lambda: import_module(_LIBRARY))

        def begin(last_boot: int) -> int:
            mine = first_boot(self._wall_ms(), self._rng, kept=last_boot) if boot is None else boot
            self._replica.change_boot(mine)
            self.hints.begin(mine)
            self._boot = mine
            return mine

        recalled = await self._keeper.open(begin)
        self.absent_ms = recalled.absent_ms
        if recalled.absent_ms is not None:
            self._replica.loaded(recalled.absent_ms)
            text = (
                f"{recalled.pieces} pieces of shared state are back from the disk, saved %d s ago"
            )
            _log.info(text, recalled.absent_ms // 1000, extra={"fields": {"event": "state_read"}})
        await self.rights.open(self._boot)
        if self._gossip is None:
            self._arrival.nobody = lambda: True
        self._look_at_arrival()
        self._pulse.start()

    async def run(self) -> None:
        """Keep what changes and tidy up, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keeper.run())
            group.create_task(self._caring.run())
            group.create_task(self.hints.run())
            group.create_task(self.rights.run())

    async def close(self) -> None:
        """Write down what is not. Safe to call twice, and also if it was never opened."""
        self._pulse.stop()
        await self.rights.close()
        await self._keeper.close()

    # ── What it is ───────────────────────────────────────────────────────────

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state; one that is joining does not yet."""
        self._look_at_arrival()
        return self._arrived

    @property
    def pieces(self) -> Pieces:
        """What exchanges carry."""
        return self._replica

    def living(self) -> Sequence[str]:
        """Return the names of the members that live, this one too, sorted."""
        return self._replica.living

    def _refuted(self) -> int:
        return 0 if self._gossip is None else self._gossip.incarnation

    def digest(self) -> str:
        """Return 16 hexadecimal digits over everything: equal where the same is held."""
        return self._replica.digest().hex()

    def state(self) -> Mapping[str, NamespaceState]:
        """Return what is held of each kind."""
        return self._replica.state()

    def counters(self) -> Mapping[tuple[str, str], int]:
        """Return (name, detail) → how often, since the start; the names are those of `NOTES`."""
        return self._counters.all()

    @property
    def unsaved(self) -> int:
        """How many pieces are not on disk as they are now."""
        return self._keeper.waiting

    def watch_members(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Tell `heard` which members live whenever that changes."""
        self._watching.append(heard)

    def watch_held(self, heard: Callable[[], None]) -> None:
        """Call `heard` once, when this node holds the cluster's state."""
        self._waiting.append(heard)

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        """Tell `heard` when everything held was dropped, because this node was away for too long."""
        self._replica.watch_forgotten(heard)

    # ── Secrets ──────────────────────────────────────────────────────────────

    def seal(self, secret: str) -> bytes:
        """Return a secret as it may be written: for members with a keyring to read only."""
        return self._vault.seal(secret)

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any member sealed; None if this node has not the key."""
        return self._vault.open(sealed)

    def carried_keys(self) -> tuple[bytes, ...]:
        """Return the keys of `carried`, for other processes of this node."""
        return self._vault.carried_keys()

    def look_around(self) -> None:
        """See to it soon what keys or members that changed ask for: secrets sealed anew, leftovers cleared."""
        self._caring.look()

    def sealed_with(self, fingerprint: str) -> int:
        """Return how many secrets only that key opens."""
        return self._caring.sealed_with(fingerprint)

    # ── What the mesh tells it ───────────────────────────────────────────────

    def connect(self, gossip: Gossip) -> None:
        """Let `gossip` carry what this node says; before `open`."""
        self._gossip = self._news.gossip = gossip
        self._arrival.nobody = gossip.nobody
        self.hints.deliver_by(gossip)
        self.rights.connect(gossip)
        self._vault.connect(gossip.seals)

    def hear(self, news: News) -> None:
        """Take a rumor."""
        self._pulse.guard(lambda: self._replica.hear(news))

    def set_members(self, living: Sequence[tuple[str, int]]) -> None:
        """Learn which members live, and in which life."""
        before = self.living()
        self._pulse.guard(lambda: self._replica.set_members(living))
        names = self.living()
        self.hints.set_peers({name: boot for name, boot in living if name != self.name})
        self._arrival.set_members(names)
        self._look_at_arrival()
        if names != before:
            self._caring.look()
            self._pulse.guard(self._refresh)
            for heard in self._watching:
                self._pulse.guard(lambda heard=heard: heard(names))  # type: ignore[misc]  # bound now

    def change_boot(self, boot: int) -> None:
        """Go on as that life."""
        self._keeper.change_boot(boot)
        self._pulse.guard(lambda: self._replica.change_boot(boot))
        self.rights.change_boot(boot)

    def met(self, peer: str, *, full: bool, held: bool) -> None:
        """Learn that an exchange came to its end; `held`: the peer holds the cluster's state."""
        self._pulse.guard(lambda: self._replica.met(peer, full=full))
        self.hints.met(peer)
        self._arrival.met(peer, full=full, held=held)
        self._look_at_arrival()

    # ── What it wants ────────────────────────────────────────────────────────

    def _take(self, wish: Wish) -> None:
        match wish:
            case SpreadRumor() | OpenExchanges() | DigestIs():
                if self._gossip is not None:
                    self._gossip.carry(wish)
                if isinstance(wish, SpreadRumor) and wish.kind.startswith(REGISTER):
                    self._pulse.at(self._now_ms() + REFRESH_SOON_MS)
            case Keep(name=name):
                self._keeper.changed(name)
            case Wake(due_ms=due_ms):
                self._pulse.at(due_ms)
            case Count(name=name, value=value, detail=detail):
                self._counters.add(name, detail, value)
                if name == "document_full":
                    self._news.full(detail)

    # ── Time ─────────────────────────────────────────────────────────────────

    def _now_ms(self) -> int:
        return int(self._monotonic_s() * 1000)

    def _beat(self) -> None:
        self._replica.tick()
        self._refresh()
        self._look_at_arrival()

    def _refresh(self) -> None:
        """Let the views say again what others would forget."""
        for view in (self.load, self.verdicts, self.running, self.rates):
            if (due_ms := view.refresh()) is not None:
                self._pulse.at(due_ms)

    def _look_at_arrival(self) -> None:
        """See whether this node holds the cluster's state now, and ask for what it lacks."""
        if self._arrived:
            return
        if not self._arrival.held:
            name = self._arrival.ask()
            if name:
                self._take(OpenExchanges("gap", name=name))
            if (due_ms := self._arrival.due_ms()) is not None:
                self._pulse.at(due_ms)
            return
        self._arrived = True
        if self._arrival.nobody() and not self._replica.held:
            self._replica.alone()
        self._caring.look()
        if len(self.living()) > 1:
            self._news.arrived(self._now_ms() - self._began_ms, self.state())
        for heard in self._waiting:
            self._pulse.guard(heard)
