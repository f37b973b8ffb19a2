"""Lazy approvals of one process: what is asked of operators, made with the first run that waits for their word.

    a run waits in a process ─▶ any node lists it ─▶ an operator answers there ─▶ the answer reaches that process

A process in which no run ever waited has imported nothing of it, and answers questions about such runs with nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from smg_node.cluster.membership.member_query import MemberQueries, query_member

if TYPE_CHECKING:
    from smg_node.cluster.approvals.approval_service import ClusterApprovals
    from smg_node.cluster.approvals.waiting_runs import WaitingRuns
    from smg_node.core.generation.tool_owner import ToolOwner
    from smg_node.core.ids import IdSource
    from smg_node.core.ports import Clock
    from smg_node.core.request_context import RequestContext
    from smg_node.http.ports.node import MemberRow
    from smg_node.pipeline.tool_loop.ports import OperatorAnswer
    from smg_node.telemetry.metrics.meters import Meters

TOPIC: Final = "mcp.approvals"
"""What members ask each other, and the control process of a node its data processes."""
ASK_S: Final = 2.0
WAITING_MAX: Final = 1_000
"""Runs of one node that wait at a time: each holds an answer that is not over, and people read the list."""

Siblings: TypeAlias = Callable[[bytes], Awaitable[tuple[Sequence[bytes], Sequence[str]]]]
"""Asks the other processes of this node; returns what they answer, and who of them is silent."""


class LazyApprovals:
    """Approvals of one process of the node called `node`; at most `waiting_max` runs wait in it at a time."""

    def __init__(
        self,
        node: str,
        ids: "IdSource",
        clock: "Clock",
        meters: "Meters",
        *,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._node = node
        self._ids = ids
        self._clock = clock
        self._meters = meters
        self._waiting_max = waiting_max
        self._waiting: WaitingRuns | None = None
        self._members: Callable[[], Sequence[MemberRow]] = tuple
        self._mesh: MemberQueries | None = None
        self._draining: Callable[[], bool] = bool
        self.siblings: Siblings | None = None
        """Set where this node has other processes in which runs may wait."""

    def connect(
        self,
        members: "Callable[[], Sequence[MemberRow]]",
        mesh: MemberQueries | None,
        draining: Callable[[], bool],
    ) -> None:
        """Let operators on other nodes answer, and let a node that is `draining` wait for nobody."""
        self._members, self._mesh, self._draining = members, mesh, draining
        if mesh is not None:
            mesh.answer(TOPIC, self._asked)

    async def wait(
        self,
        owner: "ToolOwner",
        arguments: str,
        context: "RequestContext",
        *,
        model: str,
        until_s: float,
    ) -> "OperatorAnswer":
        """See `Approvals`."""
        if self._waiting is None:
            from smg_node.cluster.approvals.waiting_runs import WaitingRuns

            self._waiting = WaitingRuns(
                self._node,
                self._ids,
                self._clock,
                self._meters,
                self._draining,
                waiting_max=self._waiting_max,
            )
        return await self._waiting.wait(owner, arguments, context, model=model, until_s=until_s)

    def service(self) -> "ClusterApprovals":
        """Return the service of all nodes' runs that wait."""
        from smg_node.cluster.approvals.approval_service import ClusterApprovals

        ask = None if self._mesh is None else self._ask
        return ClusterApprovals(self._node, self.here, self._members, ask)

    def reply(self, question: bytes) -> bytes:
        """Return what this process answers, "" where nothing ever waited in it."""
        return b"" if self._waiting is None else self._waiting.reply(question)

    async def here(self, question: bytes) -> bytes:
        """Return what this node answers, all its processes together."""
        own = self.reply(question)
        if self.siblings is None:
            return own
        others, silent = await self.siblings(question)
        if not silent and not any(others):
            return own
        from smg_node.cluster.approvals.approval_messages import merged

        return merged([own, *others], silent)

    async def _ask(self, name: str, question: bytes) -> bytes:
        """Ask another member."""
        assert self._mesh is not None, "without a mesh there are no others"
        return await query_member(self._mesh, name, TOPIC, question, deadline_s=ASK_S)

    async def _asked(self, question: bytes, _caller: str) -> bytes:
        """Answer a peer whose operator asks."""
        return await self.here(question)
