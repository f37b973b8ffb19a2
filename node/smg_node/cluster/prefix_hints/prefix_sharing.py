"""Prefix sharing: nodes exchange the engines' cached prefixes, so that each places prompts by all.

In a small cluster all nodes follow all engines, and a node publishes only what follows from its own
requests to engines that publish no cache events. In a larger one, the nodes that follow an engine
publish to the others what it has, and each of those believes one of them, until that one goes or
has nothing of it any more.

    index.watch ──▶ shared.hints ──▶ peers' hints ──▶ PrefixSharing ──▶ HintQueue ──▶ index.tell
    PromptLookups ──▶ assumed ──▶ mentioned ─────────────────────────▶ ──────────────▶ index.assume

A node that is new to an engine knows nothing of it, also where all follow all: not every engine
replays what it had before. So for some minutes a node believes others about an engine that it
follows itself; where all follow all, they publish for some minutes after a node came, or came back
as a new process. And that node takes no requests until it has received what they know, for some
seconds at most.

Wrong hints cost a miss in a cache. Nothing here is in a document, or on a disk.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from smg_node.cluster.membership.cluster_interface import ReadinessReasons
from smg_node.cluster.prefix_hints.hint_ports import FollowingFleet, HintDoor, SharedIndex
from smg_node.cluster.prefix_hints.hint_queue import HintQueue, What
from smg_node.cluster.prefix_hints.recent_guesses import Guesses
from smg_node.cluster.workers.shared_verdicts import ALL_UP_TO
from smg_node.telemetry.metrics.declared import prefix_hints as hint_metrics
from smg_node.telemetry.metrics.meters import Meters

NOT_HERE: Final = "what the engines have cached is not here yet: prefixes come from the other nodes"
ARRIVE_MAX_S: Final = 20.0
"""So long after its start a node waits for the prefixes of the others, at most."""
YOUNG_S: Final = 600.0
"""So long a node is new: in that time busy engines replace all that they have cached."""
SETTLED_S: Final = 30.0
"""Whom a node meets so soon after its own start is not newer than itself, unless that one has missed something."""
TICK_S: Final = 1.0
REST_S: Final = 60.0
"""Between two looks while there are no workers; one that comes ends the rest."""


class PrefixSharing:
    """This node's part in sharing. `all_follow` is whether every node follows every engine, however
    many.
    """

    def __init__(
        self,
        index: SharedIndex,
        hints: HintDoor,
        fleet: FollowingFleet,
        *,
        living: Callable[[], Sequence[str]],
        all_follow: Callable[[], bool],
        registered: Callable[[], int],
        monotonic_s: Callable[[], float],
    ) -> None:
        """Take the index, the mesh's hints, and the workers; `registered` is how many the cluster
        has, known here or not.
        """
        self._registered: Final = registered
        self._hints: Final = hints
        self._fleet: Final = fleet
        self._living: Final = living
        self._all_follow: Final = all_follow
        self._monotonic_s: Final = monotonic_s
        self._queue: Final = HintQueue(index, known=self._is_known, monotonic_s=monotonic_s)
        self._index: Final = index
        self._sources: dict[str, str] = {}
        """Whom this node believes, by worker."""
        self._told: dict[str, None] = {}
        """Workers of which something was taken in."""
        self._orphans: dict[str, None] = {}
        self._known: dict[str, None] = {}
        self._followed_s: dict[str, float] = {}
        """Since when this node follows which workers itself."""
        self._version = -1
        self._started_s = monotonic_s()
        self._young_until_s: dict[str, float] = {}
        """Peers that came when this node knew something, and until when they may lack it."""
        self._arrived = False
        self._first: Callable[[], ReadinessReasons] | None = None
        self._guesses = Guesses(self._started_s)
        self._work = asyncio.Event()
        self.counts: Counter[str] = Counter()
        """What was taken in, by what it was."""
        index.watch(hints.add, hints.remove, hints.clear)
        hints.connect(self, contents=index.held, wanted=self._wanted, joined=self.joined)

    # ── What peers say ───────────────────────────────────────────────────────

    def add(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Record a peer's hint that a worker has these, if that peer is the one to believe."""
        if self._believes(owner, subject):
            self._put("tell", subject, hashes)

    def remove(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Record a peer's hint that it no longer has them."""
        if self._sources.get(subject) == owner:
            self._put("untell", subject, hashes)

    def mention(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Record a peer's guess, from a prompt it sent there."""
        if not self._fleet.following(subject):
            self._put("assume", subject, hashes)

    def replace(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Record a peer's hint that a worker has these and nothing else."""
        if self._believes(owner, subject):
            self._told.pop(subject, None)
            self._put("untell_all", subject)
            self._put("tell", subject, hashes)

    def drop(self, owner: str, subject: str) -> None:
        """Withdraw all hints of a peer; soon another one may be believed."""
        self._part(owner, subject, "untell_all")

    def doubt(self, owner: str, subject: str) -> None:
        """Turn a peer's hints into guesses for a while: it is gone or no longer follows that
        worker.
        """
        self._part(owner, subject, "doubt_told")

    def _part(self, owner: str, subject: str, what: What) -> None:
        if self._sources.get(subject) == owner:
            del self._sources[subject]
            self._told.pop(subject, None)
            self._orphans[subject] = None
            self._put(what, subject)

    def _believes(self, owner: str, subject: str) -> bool:
        return self._sources.setdefault(subject, owner) == owner

    def _put(self, what: What, subject: str, hashes: Sequence[int] = ()) -> None:
        self.counts[what] += len(hashes)
        if what == "tell" and hashes:
            self._told[subject] = None
        self._queue.put(what, subject, hashes)
        if not self._queue.empty:
            self._work.set()

    def _wanted(self, owner: str, subject: str) -> bool:
        """Whether a peer is to be believed about a worker."""
        if subject not in self._known:
            return False
        return self._wants(subject) and self._sources.get(subject, owner) == owner

    def _wants(self, subject: str) -> bool:
        """Whether peers may know more of a worker than this node, which may follow it itself."""
        since_s = self._followed_s.get(subject)
        return since_s is None or self._monotonic_s() - since_s < YOUNG_S

    def _is_known(self, worker: str) -> bool:
        if worker in self._known or self._fleet.version == self._version:
            return worker in self._known
        # It may have come since the last look around.
        return any(one.id == worker for one in self._fleet.workers())

    # ── What this node says ──────────────────────────────────────────────────

    def assumed(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        """Publish what a worker may have after it answered a prompt, unless its engine publishes
        events.
        """
        if worker in self._sources or self._fleet.following(worker) or len(self._living()) < 2:
            return
        fresh = self._guesses.fresh(worker, hashes, now_s)
        if fresh:
            self._hints.mention(worker, fresh)
            self.counts["mentioned"] += len(fresh)

    # ── Time ─────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Take in what waits, and check members and workers, each second while there are workers, until cancelled."""
        self._fleet.watch(self._work.set)
        while True:
            self.look_around()
            next_s = self._monotonic_s() + (REST_S if self._at_rest else TICK_S)
            while self._monotonic_s() < next_s:
                if self._queue.work():
                    await asyncio.sleep(0)
                    continue
                self._work.clear()
                if not self._at_rest:
                    # Some worker came while hints were taken in, or while it waited.
                    next_s = min(next_s, self._monotonic_s() + TICK_S)
                try:
                    async with asyncio.timeout(max(0.0, next_s - self._monotonic_s())):
                        await self._work.wait()
                except TimeoutError:
                    break

    @property
    def _at_rest(self) -> bool:
        """Whether there is nothing of which anything could be known, told or asked."""
        arrived = self._arrived or self._first is None
        known = self._known or self._orphans or self._fleet.version != self._version
        return arrived and not known

    @property
    def waiting(self) -> int:
        """How many hints wait to be taken in."""
        return self._queue.waiting

    def catch_up(self) -> None:
        """Take in all that waits, however long it takes."""
        while self._queue.work():
            pass

    def look_around(self) -> None:
        """Take note of workers and nodes that came or went."""
        now_s = self._monotonic_s()
        if self._first is not None and not self._arrived and not self._first().reasons:
            # A node that was there before the others waits for none of them.
            self.doubts()
        self._speak_or_not(now_s)
        look = self._note_workers()
        look = self._note_following(now_s) or look
        self._note_forgotten()
        for subject in self._orphans:
            # Others may have sent it too and were ignored: their hints are asked for anew.
            self._hints.forget(subject)
            look = True
        self._orphans.clear()
        if look:
            self._hints.look_again()

    def _note_workers(self) -> bool:
        """Whether there are new workers."""
        if self._fleet.version == self._version:
            return False
        self._version = self._fleet.version
        before, self._known = self._known, dict.fromkeys(one.id for one in self._fleet.workers())
        for worker in before:
            if worker not in self._known:
                self._hints.forget(worker)
                self._sources.pop(worker, None)
                self._told.pop(worker, None)
                self._orphans.pop(worker, None)
        return any(worker not in before for worker in self._known)

    def _note_following(self, now_s: float) -> bool:
        """Update which workers this node follows, and drop hints it no longer wants; return whether
        it stopped following any.
        """
        before = self._followed_s
        self._followed_s = {
            worker: before.get(worker, now_s)
            for worker in self._known
            if self._fleet.following(worker)
        }
        for worker in [one for one in self._sources if not self._wants(one)]:
            self._hints.forget(worker)
        return any(worker not in self._followed_s for worker in before)

    def _note_forgotten(self) -> None:
        """Ask again for hints of workers that the index forgot, because another engine is there
        now.
        """
        if self._queue.empty:
            void = [worker for worker in self._told if not self._index.blocks(worker)]
            self._orphans.update(dict.fromkeys(void))

    def joined(self, lives: Mapping[str, int]) -> None:
        """Take note of nodes that came, or came back as new processes: they are sent everything."""
        now_s = self._monotonic_s()
        if now_s > self._started_s + SETTLED_S or self._has_something():
            self._young_until_s |= dict.fromkeys(lives, now_s + YOUNG_S)
        self._speak_or_not(now_s)

    def _has_something(self) -> bool:
        return any(self._index.blocks(one.id) for one in self._fleet.workers())

    def _speak_or_not(self, now_s: float) -> None:
        living = self._living()
        self._young_until_s = {
            name: until_s
            for name, until_s in self._young_until_s.items()
            if name in living and until_s > now_s
        }
        few = len(living) <= ALL_UP_TO or self._all_follow()
        self._hints.keep_quiet(quiet=few and not self._young_until_s)

    # ── What it is ───────────────────────────────────────────────────────────

    def doubts(self) -> ReadinessReasons:
        """Return whether hints of the other nodes are still on their way; never for long."""
        if self._arrived:
            return ReadinessReasons()
        if self._note_workers():
            # What was said of them before they were known was not taken in.
            self._hints.look_again()
        late = self._monotonic_s() - self._started_s >= ARRIVE_MAX_S
        here = not self._hints.missing() and self._queue.empty
        # Nothing can arrive before it is known of which workers.
        self._arrived = late or (here and len(self._known) >= self._registered())
        return ReadinessReasons() if self._arrived else ReadinessReasons(reasons=(NOT_HERE,))

    def after(self, first: Callable[[], ReadinessReasons]) -> Callable[[], ReadinessReasons]:
        """Return a check that asks `first`, and prefixes when that has nothing to object."""

        self._first = first

        def asked() -> ReadinessReasons:
            said = first()
            if said.reasons:
                return said
            return ReadinessReasons(self.doubts().reasons, said.degraded)

        return asked

    def watched(self, meters: Meters) -> None:
        """Let scrapes read it."""
        meters.watch(hint_metrics.PREFIX_HINTS, self._hints_by_what)
        meters.watch(hint_metrics.PREFIX_HINT_BYTES, lambda: {(): self._figure("sent_bytes")})
        meters.watch(
            hint_metrics.PREFIX_HINT_TROUBLES,
            lambda: {
                ("gap",): self._figure("gaps"),
                ("fetched",): self._figure("fetched"),
                ("refused",): self._figure("refused"),
            },
        )
        meters.watch(hint_metrics.PREFIX_TOLD_WORKERS, lambda: {(): len(self._sources)})
        meters.watch(hint_metrics.PREFIX_STALE_SECONDS, self._staleness_s)

    def _figure(self, name: str) -> int:
        return self._hints.figures().get(name, 0)

    def _hints_by_what(self) -> Mapping[tuple[str, ...], float]:
        counts = {what: self.counts[what] for what in ("tell", "untell", "assume", "mentioned")}
        counts |= {what: self._figure(what) for what in ("told", "heard")}
        counts |= {"unsaid": self._figure("dropped"), "lost": self._queue.dropped}
        return {(what,): count for what, count in counts.items()}

    def _staleness_s(self) -> Mapping[tuple[str, ...], float]:
        silent = self._hints.silent_s()
        believed = dict.fromkeys(sorted(self._sources.values()))
        return {(name,): silent[name] for name in believed if name in silent}
