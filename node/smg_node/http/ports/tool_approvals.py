"""Tool approvals port: runs of tools that wait for an operator's word, on all nodes, and the answers.

Arguments are what models made of the words of tenants: operators see them, and nothing keeps them.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class WaitingRun(msgspec.Struct, frozen=True, gc=False):
    """A run that waits. `arguments` is JSON text, only its beginning where it is `cut`; `until_ms` is when it is given up.

    `tenant` and `key_id` are those of the request, "" where it needed no key; `server` is the request's name for it.
    """

    id: str
    node: str
    tenant: str
    key_id: str
    server: str
    tool: str
    arguments: str
    cut: bool
    model: str
    request_id: str
    since_ms: int
    until_ms: int


class ApprovalList(msgspec.Struct, frozen=True):
    """Runs that wait, the longest wait first. `left_out` counts those too many for a list; `silent` says who was not heard."""

    runs: Sequence[WaitingRun]
    left_out: int
    silent: Mapping[str, str]


class ApprovalService(Protocol):
    """Runs that wait on all nodes."""

    async def runs(self) -> ApprovalList:
        """Return all that wait now, with the beginnings of their arguments."""
        ...

    async def run(self, run_id: str) -> WaitingRun:
        """Return one with its arguments.

        NOT_FOUND `approval_not_found` where it is over or nobody knows it, CONFLICT `approval_already_answered`.
        """
        ...

    async def answer(self, run: WaitingRun, *, approve: bool, reason: str) -> None:
        """Answer it where it waits; errors as above, and those of a node that cannot be asked, which may have heard it."""
        ...
