"""Approval service of a node: finds runs that wait on any member, and brings an operator's answer to where they wait.

All living members are asked at once, as for `explain`; one that is silent costs two seconds and is named. An answer goes
to the member that has the run, and to no other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from smg_node.cluster.approvals.approval_messages import Question, Reply, pack, read_reply
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.node import MemberRow
from smg_node.http.ports.tool_approvals import ApprovalList, WaitingRun

_ASKED_AT_ONCE_MAX: Final = 64
_LIVING: Final = ("alive", "suspect")
_MISUNDERSTOOD: Final = "it says nothing that is understood here"

AskMember: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]


class ClusterApprovals:
    """Runs that wait on all members. `here` asks this node, `ask` another; None for a node that is alone."""

    def __init__(
        self,
        node: str,
        here: Callable[[bytes], Awaitable[bytes]],
        members: Callable[[], Sequence[MemberRow]],
        ask: AskMember | None,
    ) -> None:
        self._node = node
        self._here = here
        self._members = members
        self._ask_member = ask

    async def runs(self) -> ApprovalList:
        """See `ApprovalService`."""
        replies, silent = await self._ask_all(Question())
        runs = [run for reply in replies for run in reply.runs]
        runs.sort(key=lambda run: (run.since_ms, run.id))
        return ApprovalList(runs, sum(reply.left_out for reply in replies), silent)

    async def run(self, run_id: str) -> WaitingRun:
        """See `ApprovalService`."""
        replies, silent = await self._ask_all(Question(run_id))
        for reply in replies:
            if reply.before:
                raise _answered(run_id)
            for run in reply.runs:
                return run
        raise _unknown(run_id, silent)

    async def answer(self, run: WaitingRun, *, approve: bool, reason: str) -> None:
        """See `ApprovalService`."""
        question = pack(Question(run.id, approve, reason))
        if run.node == self._node:
            reply = _read(await self._here(question))
        else:
            reply = await self._ask(run.node, question)
        if reply.before:
            raise _answered(run.id)
        if not reply.done and reply.silent:
            why = f"{run.node}: {_silent(run.node, reply)[run.node]}; one may have heard the answer"
            raise SmgError(ErrorKind.UPSTREAM_TIMEOUT, why, code="member_silent")
        if not reply.done:
            raise _unknown(run.id, {})

    async def _ask_all(self, question: Question) -> tuple[Sequence[Reply], dict[str, str]]:
        """Return the answers of all that answer, and why the others do not."""
        packed = pack(question)
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)

        async def ask(name: str) -> Reply | str:
            async with turns:
                try:
                    return await self._ask(name, packed)
                except SmgError as error:
                    return error.message.removeprefix(f"{name}: ")

        names = [row.name for row in self._members() if row.state in _LIVING and not row.me]
        names = [] if self._ask_member is None else sorted(names)
        own, *said = await asyncio.gather(self._here(packed), *map(ask, names))
        assert isinstance(own, bytes), "the first is this node"
        replies = {self._node: _read(own)}
        silent: dict[str, str] = {}
        for name, one in zip(names, said, strict=True):
            if isinstance(one, Reply):
                replies[name] = one
            else:
                silent[name] = str(one)
        for name, reply in replies.items():
            silent |= _silent(name, reply)
        return list(replies.values()), dict(sorted(silent.items()))

    async def _ask(self, name: str, question: bytes) -> Reply:
        assert self._ask_member is not None, "a node that is alone knows no others"
        return _read(await self._ask_member(name, question), name)


def _read(said: bytes, name: str = "this node") -> Reply:
    reply = read_reply(said)
    if reply is None:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED, f"{name}: {_MISUNDERSTOOD}", code="member_refused"
        )
    return reply


def _silent(name: str, reply: Reply) -> dict[str, str]:
    if not reply.silent:
        return {}
    return {name: f"not heard: its processes {', '.join(reply.silent)}"}


def _answered(run_id: str) -> SmgError:
    return SmgError(
        ErrorKind.CONFLICT,
        f"somebody has answered {run_id[:64]!r} already",
        where="id",
        code="approval_already_answered",
    )


def _unknown(run_id: str, silent: dict[str, str]) -> SmgError:
    told = [f"{name} cannot be asked: {why}" for name, why in sorted(silent.items())]
    return SmgError(
        ErrorKind.NOT_FOUND,
        "; ".join([f"no run {run_id[:64]!r} waits for approval", *told]),
        where="id",
        code="approval_not_found",
    )
