"""Prior calls: calls of ours from before this answer: approved or refused by a person, or left open. Pure.

They are shown as blocks of this answer, whole, and run before the model speaks. Calls that were left open stand in the
context already; those that a person has answered are added at its end.
"""

from collections.abc import Mapping, Sequence

import msgspec

from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event
from smg_node.core.generation.request import ToolCall, Turn
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ApprovedCall, OpenToolCall, RunResult, ToolServing
from smg_node.mcp.catalog.catalog import Catalog
from smg_node.mcp.failures import plain_text
from smg_node.pipeline.tool_loop.call_ledger import CallLedger, Judged
from smg_node.pipeline.tool_loop.pass_stream import Called
from smg_node.pipeline.tool_loop.pass_turns import result_turn, with_results

_REASON_CHARACTERS_MAX = 500
REFUSED = "the user did not approve it"
GONE = "the request does not offer this tool any more"


class PriorCalls:
    """Calls of one request from before its answer. `calls` are in the order in which they are shown."""

    def __init__(self, serving: ToolServing, catalog: Catalog, ledger: CallLedger) -> None:
        self._catalog = catalog
        self._ledger = ledger
        self.next_block = 0
        # Blocks are numbered in the order in which they are shown.
        self._open = [self._left_open(call) for call in serving.open_calls]
        # Those that were refused have no block: a history that comes back tells them where they were, before the others.
        self._answered = sorted((self._approved(call) for call in serving.answered), key=_is_shown)
        self.calls: Sequence[Called] = (*self._open, *self._answered)

    def shown(self, called: Called) -> list[Event]:
        """Return the block of a call, its arguments in one piece; nothing of one that a person refused."""
        if called.block is None:
            return []
        owner, block = called.judged.owner, called.block
        start = BlockStart(0, block, "call", called.name, called.call_id, owner=owner)
        end = BlockEnd(0, block, "call", called.arguments, called.name, called.call_id, owner=owner)
        return [start, Delta(0, block, called.arguments), end]

    def turns(self, turns: Sequence[Turn], results: Mapping[str, RunResult]) -> tuple[Turn, ...]:
        """Return the context with all of these calls, and with what came of them."""
        open_ids = {called.call_id for called in self._open}
        history = with_results(turns, {one: results[one] for one in open_ids})
        if not self._answered:
            return history
        calls = tuple(
            ToolCall(called.call_id, called.name, called.arguments, called.judged.owner)
            for called in self._answered
        )
        told = [result_turn(called.call_id, results[called.call_id]) for called in self._answered]
        return (*history, Turn("assistant", None, calls=calls), *told)

    def _approved(self, call: ApprovedCall) -> Called:
        owner = ToolOwner(call.server, call.tool, approval=call.approval)
        name = self._catalog.name_of(owner)
        tool = None if name is None else self._catalog.offered[name]
        if not call.approve:
            reason = plain_text(call.reason, _REASON_CHARACTERS_MAX)
            why = f"{REFUSED}: {reason}" if reason else REFUSED
            judged = Judged("unseen", rule="the user", why=why)
        elif tool is None:
            judged = Judged("refuse", owner, None, "not offered", GONE)
        else:
            judged = self._ledger.judge_answered(tool, kept=call.kept)
            owned = msgspec.structs.replace(tool.owner, approval=call.approval)
            judged = msgspec.structs.replace(judged, owner=owned)
        call_id = f"call_{call.approval}"
        return Called(self._block(judged), name or call.tool, call_id, call.arguments, judged)

    def _left_open(self, call: OpenToolCall) -> Called:
        name = self._catalog.name_of(call.owner)
        if name is None:
            judged = Judged("refuse", call.owner, None, "not offered", GONE)
        else:
            judged = self._ledger.judge(name)
        if judged.fate == "ask":
            # It was called already; what it asks cannot be asked in the middle of an answer.
            judged = Judged("refuse", call.owner, judged.tool, judged.rule, "it needs approval")
        shown = name or call.owner.tool
        return Called(self._block(judged), shown, call.call_id, call.arguments, judged)

    def _block(self, judged: Judged) -> int | None:
        if judged.fate == "unseen":
            return None
        self.next_block += 1
        return self.next_block - 1


def _is_shown(called: Called) -> bool:
    return called.block is not None
