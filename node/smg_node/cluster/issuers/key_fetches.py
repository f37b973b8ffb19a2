"""Key fetches of one node: asks issuers for their keys, so that one request of one node serves the whole cluster.

    a token with an unknown key, on any node ─▶ the node whose duty the issuer is ─▶ the issuer
                 all nodes ◀── shared state ◀──┘

The duty is drawn by rendezvous of `issuer/ALIAS` over the living nodes. The node that has it refreshes the keys, and
decides for all whether an unknown key is a reason to ask: so whatever is sent to however many nodes, the issuer is asked
as often as by one. A node that gets no answer from it, or that the issuer is away for it, asks the next, and at last the
issuer itself. Where a node without this is the first (an older release), others stand in for it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from smg_mesh.shared import IssuerKeySet, StateError, probers
from smg_node.access.tokens.fetch_schedule import FetchSchedule
from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.key_ports import (
    Fetch,
    FetchedKeys,
    IssuerError,
    SharedKeySets,
    source_of,
)
from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.core.errors import SmgError
from smg_node.core.ports import Clock, Rng

TOPIC: Final = "access.keys"
ASKED_MAX: Final = 2
"""So many other nodes are asked before a node asks the issuer itself."""
ASK_S: Final = 1.2
"""A request waits two seconds in all."""
ARRIVAL_S: Final = 1.0
"""So long keys may be on their way from the node that fetched them."""
REWRITE_MS: Final = 240_000
"""Keys that are the same are written again after so long: for their age, not for each that asks."""
IDLE_S: Final = 3_600.0

Outcome: TypeAlias = Literal["new", "same", "early", "away", "unknown"]

_log = logging.getLogger("smg_node.cluster")


class Question(msgspec.Struct, frozen=True, array_like=True):
    """Asks for an issuer's keys, because one is unknown."""

    alias: str
    source: str


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """How that went, and which keys count where it was decided."""

    outcome: Outcome
    digest: bytes = b""


class FetchView(msgspec.Struct, frozen=True):
    """What a node knows of asking one issuer, for operators. Times are Unix milliseconds."""

    asked_ms: int | None
    requests: int
    failures: int
    last_error: str
    last_error_ms: int | None


class _Line:
    """What this node knows of asking one issuer."""

    __slots__ = (
        "asked_ms", "error", "error_ms", "failures", "requests", "running", "schedule", "source",
    )  # fmt: skip

    def __init__(self, schedule: FetchSchedule, source: str) -> None:
        self.schedule = schedule
        self.source = source
        self.running: asyncio.Future[None] | None = None
        self.asked_ms: int | None = None
        self.requests = 0
        self.failures = 0
        self.error = ""
        self.error_ms: int | None = None


class KeyFetches:
    """Fetches of the node called `me`. `living` are the members that live; `mesh` is None for a node alone."""

    def __init__(
        self,
        me: str,
        issuers: Callable[[], Mapping[str, Issuer]],
        keys: SharedKeySets,
        fetch: Fetch,
        *,
        clock: Clock,
        rng: Rng,
        living: Callable[[], Sequence[str]],
        held: Callable[[], bool],
        mesh: MemberQueries | None,
    ) -> None:
        self._me: Final = me
        self._issuers: Final = issuers
        self._keys: Final = keys
        self._fetch: Final = fetch
        self._clock: Final = clock
        self._rng: Final = rng
        self._living: Final = living
        self._held: Final = held
        self._mesh: Final = mesh
        self._lines: dict[str, _Line] = {}
        self._group: asyncio.TaskGroup | None = None
        self._wake: Final = asyncio.Event()
        self._arrived: Final[dict[str, asyncio.Event]] = {}
        keys.watch(self._heard)
        if mesh is not None:
            mesh.answer(TOPIC, self._answer)

    # ── Asking ───────────────────────────────────────────────────────────────

    def want(self, alias: str) -> "asyncio.Future[None] | None":
        """Return what is done once a fetch for an unknown key has ended; None where none may be made now."""
        issuer = self._issuers().get(alias)
        if issuer is None or self._group is None:
            return None
        line = self._line(issuer)
        if line.running is not None:
            return line.running
        if not line.schedule.may_ask(self._now_ms()):
            return None
        return self._start(line, self._ask_for_unknown(issuer, line))

    async def run(self) -> None:
        """Refresh keys as long as this node lives, where that is its duty."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                while True:
                    self._wake.clear()
                    wait_s = self._refresh_due()
                    try:
                        async with asyncio.timeout(wait_s):
                            await self._wake.wait()
                    except TimeoutError:
                        pass
        finally:
            self._group = None

    def look(self) -> None:
        """See whether anything is due now: issuers or members are others than before."""
        self._wake.set()

    def nodes(self, alias: str) -> Sequence[str]:
        """Return the living nodes in the order of their duty for an issuer, the first has it."""
        names = [(name, "") for name in self._living()] or [(self._me, "")]
        return probers(f"issuer/{alias}", names, count=len(names))

    def view(self, alias: str) -> FetchView:
        """Return what is known of asking an issuer."""
        line = self._lines.get(alias)
        if line is None:
            return FetchView(None, 0, 0, "", None)
        return FetchView(line.asked_ms, line.requests, line.failures, line.error, line.error_ms)

    def counts(self) -> Mapping[tuple[str, ...], int]:
        """Return how many requests were made, by alias and outcome."""
        found: dict[tuple[str, ...], int] = {}
        for alias, line in sorted(self._lines.items()):
            found[alias, "ok"] = line.requests - line.failures
            found[alias, "failed"] = line.failures
        return found

    # ── Deciding ─────────────────────────────────────────────────────────────

    def _refresh_due(self) -> float:
        """Begin what is due; return in how many seconds to look again."""
        if not self._held():
            # It joins others, who may have the keys.
            return 0.2
        now_ms, soonest_ms = self._now_ms(), None
        issuers = self._issuers()
        for alias in [alias for alias in self._lines if alias not in issuers]:
            del self._lines[alias]
        for alias, issuer in issuers.items():
            line = self._line(issuer)
            if line.running is not None:
                continue
            nodes = self.nodes(alias)
            place = nodes.index(self._me) if self._me in nodes else len(nodes)
            due_ms = line.schedule.due_ms(place)
            if due_ms <= now_ms:
                self._start(line, self._ask_issuer(issuer, line, for_unknown=False))
            else:
                soonest_ms = due_ms if soonest_ms is None else min(soonest_ms, due_ms)
        return IDLE_S if soonest_ms is None else max(0.05, (soonest_ms - now_ms) / 1000)

    def _start(self, line: _Line, asking: "Awaitable[Outcome]") -> "asyncio.Future[None]":
        assert self._group is not None, "it runs"
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.running = done
        line.schedule.begin(self._now_ms())
        self._group.create_task(self._finish(line, done, asking))
        return done

    async def _finish(
        self, line: _Line, done: "asyncio.Future[None]", asking: "Awaitable[Outcome]"
    ) -> None:
        try:
            await asking
        finally:
            line.running = None
            if not done.done():
                done.set_result(None)
            self._wake.set()

    async def _ask_for_unknown(self, issuer: Issuer, line: _Line) -> Outcome:
        """Let the node whose duty it is decide, and ask the issuer where that does not."""
        for name in self._before_me(issuer.alias):
            reply = await self._ask_node(name, issuer)
            if reply is None or reply.outcome in ("away", "unknown"):
                continue
            is_new = await self._has_arrived(issuer, reply.digest)
            line.schedule.bring(self._now_ms(), is_new=is_new, for_unknown=True)
            return "new" if is_new else "same"
        return await self._ask_issuer(issuer, line, for_unknown=True)

    def _before_me(self, alias: str) -> Sequence[str]:
        if self._mesh is None:
            return ()
        nodes = list(self.nodes(alias))
        before = nodes[: nodes.index(self._me)] if self._me in nodes else nodes
        return before[:ASKED_MAX]

    async def _ask_node(self, name: str, issuer: Issuer) -> Reply | None:
        assert self._mesh is not None, "there are other nodes"
        question = msgspec.msgpack.encode(Question(issuer.alias, source_of(issuer)))
        try:
            content = await query_member(self._mesh, name, TOPIC, question, deadline_s=ASK_S)
            return msgspec.msgpack.decode(content, type=Reply)
        except (SmgError, msgspec.MsgspecError):
            return None

    async def _has_arrived(self, issuer: Issuer, digest: bytes) -> bool:
        """Return whether keys come that are new here: those of that digest are awaited."""
        held = self._held_keys(issuer)
        if not digest or (held is not None and held.digest == digest):
            return False
        arrived = self._arrived.setdefault(issuer.alias, asyncio.Event())
        try:
            async with asyncio.timeout(ARRIVAL_S):
                while True:
                    held = self._held_keys(issuer)
                    if held is not None and held.digest == digest:
                        return True
                    arrived.clear()
                    await arrived.wait()
        except TimeoutError:
            return False

    async def _ask_issuer(self, issuer: Issuer, line: _Line, *, for_unknown: bool) -> Outcome:
        line.asked_ms = self._clock.now_ms()
        line.requests += 1
        try:
            fetched = await self._fetch(issuer)
            is_new = self._take(issuer, fetched, for_unknown=for_unknown)
        except (IssuerError, ValueError, StateError) as error:
            line.failures += 1
            self._note_failure(issuer, line, str(error))
            line.schedule.fail(self._now_ms(), for_unknown=for_unknown)
            return "away"
        if line.error:
            _log.info("the keys of issuer %s can be had again", issuer.alias)
        line.error, line.error_ms = "", None
        line.schedule.bring(self._now_ms(), is_new=is_new, for_unknown=for_unknown)
        return "new" if is_new else "same"

    def _take(self, issuer: Issuer, fetched: FetchedKeys, *, for_unknown: bool) -> bool:
        """Share what was fetched; return whether it is something else than before."""
        held, now_ms = self._held_keys(issuer), self._clock.now_ms()
        made = IssuerKeySet(
            issuer.alias,
            fetched.document,
            now_ms,
            fetched.max_age_ms,
            source_of(issuer),
            self._me,
        )
        is_new = held is None or held.digest != made.digest
        young = held is not None and 0 <= now_ms - held.fetched_ms < REWRITE_MS
        if is_new or not young or not for_unknown:
            self._keys.put(made)
        return is_new

    def _note_failure(self, issuer: Issuer, line: _Line, why: str) -> None:
        if why != line.error:
            fields = {"fields": {"event": "issuer_unreachable", "issuer": issuer.alias}}
            _log.warning("no keys of issuer %s: %s", issuer.alias, why, extra=fields)
        line.error, line.error_ms = why, self._clock.now_ms()

    # ── Being asked ──────────────────────────────────────────────────────────

    async def _answer(self, content: bytes, _caller: str) -> bytes:
        """Decide for a peer that met an unknown key."""
        try:
            question = msgspec.msgpack.decode(content, type=Question)
        except msgspec.MsgspecError:
            return _reply("unknown")
        issuer = self._issuers().get(question.alias)
        if issuer is None or self._group is None or source_of(issuer) != question.source:
            return _reply("unknown")
        line = self._line(issuer)
        before, failures = self._digest(issuer), line.failures
        running = line.running
        if running is None:
            if not line.schedule.may_ask(self._now_ms()):
                return _reply("early", before)
            running = self._start(line, self._ask_issuer(issuer, line, for_unknown=True))
        await asyncio.shield(running)
        after = self._digest(issuer)
        if line.failures != failures and after == before:
            return _reply("away", after)
        return _reply("same" if after == before else "new", after)

    # ── What is there ────────────────────────────────────────────────────────

    def _line(self, issuer: Issuer) -> _Line:
        line, source = self._lines.get(issuer.alias), source_of(issuer)
        if line is None or line.source != source:
            schedule = FetchSchedule(self._rng, self._now_ms())
            line = self._lines[issuer.alias] = _Line(schedule, source)
            self._follow(issuer, line)
        return line

    def _heard(self, aliases: Sequence[str]) -> None:
        issuers = self._issuers()
        for alias in aliases:
            if alias in issuers and (line := self._lines.get(alias)) is not None:
                self._follow(issuers[alias], line)
            if (arrived := self._arrived.get(alias)) is not None:
                arrived.set()
        self._wake.set()

    def _follow(self, issuer: Issuer, line: _Line) -> None:
        held = self._held_keys(issuer)
        if held is None:
            line.schedule.drop(self._now_ms())
            return
        age_ms = self._clock.now_ms() - held.fetched_ms
        line.schedule.hold(self._now_ms(), age_ms=age_ms, max_age_ms=held.max_age_ms)

    def _held_keys(self, issuer: Issuer) -> IssuerKeySet | None:
        return self._keys.get(issuer.alias, source_of(issuer))

    def _digest(self, issuer: Issuer) -> bytes:
        held = self._held_keys(issuer)
        return b"" if held is None else held.digest

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_s() * 1000)


def _reply(outcome: Outcome, digest: bytes = b"") -> bytes:
    return msgspec.msgpack.encode(Reply(outcome, digest))
