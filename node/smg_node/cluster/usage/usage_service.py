"""Usage service: sums what requests used over all nodes; a node that does not answer is named.

A node counts what went through itself, and keeps it over a restart. So nothing is counted twice,
and what a dead node counted is missing until it is back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import HOUR_MS, NONE, OTHER, Counts, Line, line, merged
from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.cluster.usage.usage_log import DAYS_KEPT
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.run_name import server_of
from smg_node.http.ports.node import MemberRow
from smg_node.http.ports.usage import Amounts, Aspect, UsageQuery, UsageRow, UsageSums

USAGE: Final = "node.usage"
ASK_S: Final = 5.0
ROWS_MAX: Final = 5_000
"""Of an answer; the smallest are put together beyond that."""
ANSWER_BYTES_MAX: Final = 900_000
"""Of a peer's answer; its transport takes a million."""
ASKING_MAX: Final = 4
"""Sums at a time on one node: each may read a month of files."""
TOGETHER: Final = -1
"""The hour of what was put together because there was too much of it."""
_ASKED_AT_ONCE_MAX: Final = 16
_LIVING: Final = ("alive", "suspect")

Group: TypeAlias = tuple[int, str, str, str, str, str]
"""Hour, tenant, key, model, provider, tool or its server; zero and empty where rows are not apart by it."""


class Kept(Protocol):
    """Port to the usage on this node's disk."""

    async def read(self, first: int, end: int) -> Sequence[Line]:
        """Return the totals of the hours from `first` to before `end`; OSError if they cannot be read."""
        ...


class _Question(msgspec.Struct, frozen=True):
    first: int
    end: int
    by: tuple[Aspect, ...]
    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    provider: str | None = None
    tool: str | None = None
    server: str | None = None


class _Said(msgspec.Struct, frozen=True):
    lines: list[Line]
    cut: int = 0
    trouble: str = ""


class ClusterUsage:
    """Sums the usage of all nodes. `members` are all members; without a mesh this node is alone."""

    def __init__(
        self,
        name: str,
        usage: UsageBook,
        kept: Kept,
        members: Callable[[], Sequence[MemberRow]],
        mesh: MemberQueries | None,
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._name = name
        self._usage = usage
        self._kept = kept
        self._members = members
        self._mesh = mesh
        self._now_ms = now_ms
        self._asking = 0
        if mesh is not None:
            mesh.answer(USAGE, self._asked)

    async def usage(self, wish: UsageQuery) -> UsageSums:
        """See `UsageService`."""
        oldest = (self._now_ms() // HOUR_MS // 24 - DAYS_KEPT) * 24
        question = _Question(
            max(wish.first, oldest),
            max(wish.end, oldest),
            _asked_by(wish),
            wish.tenant,
            wish.key,
            wish.model,
            wish.provider,
            wish.tool,
            wish.server,
        )
        rows = {row.name: row for row in self._members()}
        living = [name for name, row in rows.items() if row.state in _LIVING and not row.me]
        said, *answers = await asyncio.gather(
            self._bounded(question), *self._ask_all(sorted(living), question)
        )
        silent = {
            name: f"it is {row.state}"
            for name, row in rows.items()
            if row.state not in _LIVING and not row.me
        }
        parts = {self._name: said, **dict(zip(sorted(living), answers, strict=True))}
        silent |= {name: one.trouble for name, one in parts.items() if one.trouble}
        told = (one for part in parts.values() for one in part.lines)
        lines, cut = _fitting(grouped(told, wish.by), ROWS_MAX)
        return UsageSums(
            first=question.first,
            end=question.end,
            rows=[_row(one, wish.by) for one in lines],
            total=_total(lines),
            exact=not silent,
            cut=cut + sum(part.cut for part in parts.values()),
            silent=dict(sorted(silent.items())),
        )

    # ── Here ─────────────────────────────────────────────────────────────────

    async def _bounded(self, question: _Question) -> _Said:
        """Sum up what this node has; OVERLOADED if too many such sums run already."""
        if self._asking >= ASKING_MAX:
            raise SmgError(
                ErrorKind.OVERLOADED,
                "too many ask for usage at the same time",
                retry_after_s=1.0,
            )
        self._asking += 1
        try:
            return await self._said(question)
        finally:
            self._asking -= 1

    async def _said(self, question: _Question) -> _Said:
        # First what is here, then what is on the disk: what is written in between has the same part.
        here, trouble = self._usage.lines(), ""
        kept: Sequence[Line] = ()
        try:
            kept = await self._kept.read(question.first, question.end)
        except OSError as error:
            trouble = f"its files cannot be read: {(error.strerror or str(error)).lower()}"
        known = merged(kept, here).values()
        lines, cut = _fitting(grouped(selected(known, question), question.by), ROWS_MAX)
        if self._usage.lost:
            trouble = trouble or "its disk was full for so long that some of it is lost"
        return _Said(lines, cut, trouble)

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer that sums up."""
        try:
            question = msgspec.msgpack.decode(payload, type=_Question)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return msgspec.msgpack.encode(_Said([], 0, "it does not understand the question"))
        try:
            said = await self._bounded(question)
        except SmgError as error:
            return msgspec.msgpack.encode(_Said([], 0, error.message))
        most = len(said.lines)
        answer = msgspec.msgpack.encode(said)
        while len(answer) > ANSWER_BYTES_MAX and most:
            most //= 2
            lines, cut = _fitting(said.lines, most)
            answer = msgspec.msgpack.encode(_Said(lines, said.cut + cut, said.trouble))
        return answer

    # ── Elsewhere ────────────────────────────────────────────────────────────

    def _ask_all(self, names: Sequence[str], question: _Question) -> list[Awaitable[_Said]]:
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)
        payload = msgspec.msgpack.encode(question)

        async def ask(name: str) -> _Said:
            async with turns:
                return await self._ask(name, payload)

        return [ask(name) for name in names]

    async def _ask(self, name: str, payload: bytes) -> _Said:
        if self._mesh is None:
            return _Said([], 0, "this node runs alone")
        try:
            answer = await query_member(self._mesh, name, USAGE, payload, deadline_s=ASK_S)
            return msgspec.msgpack.decode(answer, type=_Said)
        except SmgError as error:
            return _Said([], 0, error.message.removeprefix(f"{name}: "))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _Said([], 0, "it says nothing that is understood here")


def _asked_by(wish: UsageQuery) -> tuple[Aspect, ...]:
    """Return what rows of other nodes are to be apart by: a release that cannot leave other tools out then says that it
    does not understand, and does not answer for all of them.
    """
    of_tools = wish.tool is not None or wish.server is not None
    return (*wish.by, "tool") if of_tools and "tool" not in wish.by else tuple(wish.by)


def selected(lines: Iterable[Line], question: _Question) -> Iterable[Line]:
    """Yield what is asked for; rows that stand for several owners match no owner by name."""
    wanted = tuple(
        None if wish is None else "" if wish == NONE else wish
        for wish in (
            *(question.tenant, question.key, question.model, question.provider),
            *(question.tool, question.server),
        )
    )
    for one in lines:
        if not one.events or not question.first <= one.hour < question.end:
            continue
        said = (*one.who, server_of(one.tool))
        if all(wish is None or wish == name for wish, name in zip(wanted, said, strict=True)):
            yield one


def grouped(lines: Iterable[Line], by: Sequence[Aspect]) -> list[Line]:
    """Return the sums, grouped by these aspects, sorted."""
    groups: dict[Group, Counts] = {}
    for one in lines:
        groups.setdefault(_group(one, by), Counts()).add(one)
    return [
        line("", hour, (tenant, key, model, provider, tool), counts)
        for (hour, tenant, key, model, provider, tool), counts in sorted(
            groups.items(), key=_group_of
        )
    ]


def _group_of(item: tuple[Group, Counts]) -> Group:
    return item[0]


def _group(one: Line, by: Sequence[Aspect]) -> Group:
    hour = 0
    if "hour" in by or one.hour == TOGETHER:
        hour = one.hour
    elif "day" in by:
        hour = one.hour - one.hour % 24
    return (
        hour,
        one.tenant if "tenant" in by else "",
        one.key_id if "key" in by else "",
        one.model if "model" in by else "",
        one.provider if "provider" in by else "",
        one.tool if "tool" in by else server_of(one.tool) if "server" in by else "",
    )


def _fitting(lines: Sequence[Line], most: int) -> tuple[list[Line], int]:
    """Return at most so many rows, and how many of the smallest were merged for that."""
    if len(lines) <= most:
        return list(lines), 0
    by_size = sorted(lines, key=lambda one: (-one.cost, -one.prompt - one.answer, -one.events))
    kept, rest = by_size[: max(0, most - 1)], by_size[max(0, most - 1) :]
    together = Counts()
    for one in rest:
        together.add(one)
    kept.sort(key=lambda one: (one.hour, one.who))
    return [line("", TOGETHER, (OTHER, OTHER, OTHER, OTHER, OTHER), together), *kept], len(rest)


def _row(one: Line, by: Sequence[Aspect]) -> UsageRow:
    apart = one.hour != TOGETHER and ("hour" in by or "day" in by)
    hour = one.hour if apart else None
    owner = (one.tenant, one.key_id, one.model, _amounts(one), one.provider)
    return UsageRow(hour, *owner, one.tool if "tool" in by else "", server_of(one.tool))


def _total(lines: Iterable[Line]) -> Amounts:
    total = Counts()
    for one in lines:
        total.add(one)
    return _amounts(total)


def _amounts(of: Line | Counts) -> Amounts:
    return Amounts(
        of.requests,
        of.refused,
        of.prompt,
        of.cached,
        of.answer,
        of.cost,
        of.written,
        of.calls,
        of.unpriced,
        of.estimated,
        of.runs,
        of.failed,
        of.run_ms,
        of.run_bytes,
    )
