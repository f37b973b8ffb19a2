"""Call ledger: what becomes of each call of a model, decided by its name when it begins, and how many there were. Pure.

A call is the client's, or is run, waits for a person, is refused with a reason, or is not even shown. The whole of an
answer has one ledger: limits count over all of its passes.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ToolServing
from smg_node.mcp.catalog.arguments import canonical_arguments
from smg_node.mcp.catalog.catalog import Catalog, OfferedTool
from smg_node.mcp.failures import plain_text
from smg_node.mcp.policy import Decision, decide
from smg_node.mcp.server_spec import Verdict

Fate: TypeAlias = Literal["client", "run", "ask", "wait", "refuse", "unseen"]
"""`ask`: the answer ends and a person is asked; `wait`: the run waits for an operator's word."""
_VERDICTS: Final[Mapping[Fate, Verdict]] = {
    "client": "allow",
    "run": "allow",
    "ask": "ask",
    "wait": "ask",
    "refuse": "deny",
    "unseen": "deny",
}
SAME_CALLS_MAX: Final = 2
"""A model that makes the same call once more than this is in a circle."""
_NAME_CHARACTERS_SHOWN: Final = 80
_NOT_STORED: Final = "it needs approval, and the answer is not stored (store: false)"


class Judged(msgspec.Struct, frozen=True):
    """What becomes of a call. `rule` is what decided, `why` what its model is told where it is not run."""

    fate: Fate
    owner: ToolOwner | None = None
    tool: OfferedTool | None = None
    rule: str = ""
    why: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict in the words of the policy."""
        return _VERDICTS[self.fate]


CLIENTS: Final = Judged("client")
"""A call of a function of the client's."""


class CallLedger:
    """Judges the calls of one answer. `allowed` are the only names that may be called, None for all."""

    def __init__(
        self,
        catalog: Catalog,
        clients: Collection[str],
        serving: ToolServing,
        *,
        allowed: Collection[str] | None = None,
        waits: bool = False,
    ) -> None:
        """`clients` are the names of the client's functions; `waits`: operators can be asked."""
        self._catalog = catalog
        self._clients = frozenset(clients)
        self._serving = serving
        self._allowed = None if allowed is None else frozenset(allowed)
        self._waits = waits
        self._uses: Counter[str] = Counter()
        self._same: Counter[tuple[str, str]] = Counter()
        self.runs = 0
        """Runs that were begun, or are as soon as their calls are whole."""
        self.exhausted = False
        """Whether more was called than may be run."""

    def judge(self, name: str) -> Judged:
        """Return what becomes of a call that begins, and count it."""
        if name in self._clients:
            return CLIENTS
        tool = self._catalog.offered.get(name)
        if tool is None:
            return self._unknown(name)
        if self._allowed is not None and name not in self._allowed:
            return _refused(tool, "tool_choice", "the request does not allow it")
        decision = decide(
            tool.spec,
            tool.owner.tool,
            tool.hints,
            None if tool.asked is None else tool.asked.approval,
            changed=tool.changed,
        )
        if decision.verdict == "deny":
            return _refused(tool, decision.rule, "a rule of the operator does not allow it")
        if decision.verdict == "ask":
            return self._asked(name, tool, decision)
        return self._counted(name, tool, "run", decision.rule)

    def judge_answered(self, tool: OfferedTool, *, kept: bool) -> Judged:
        """Return what becomes of a call that a person has allowed; it counts, and no number stops it.

        `kept`: a stored response asks for it, without which an operator's question is not answered.
        """
        decision = decide(tool.spec, tool.owner.tool, tool.hints, None, changed=tool.changed)
        if decision.verdict == "deny":
            return _refused(tool, decision.rule, "a rule of the operator does not allow it")
        if decision.verdict == "ask" and not kept:
            why = "it needs approval, and no response that is stored asks for this very call"
            return _refused(tool, decision.rule, why)
        self.runs += 1
        return Judged("run", tool.owner, tool, decision.rule)

    def in_a_circle(self, name: str, arguments: str) -> bool:
        """Count a call that is to be run; true where the same one was made twice before."""
        key = (name, canonical_arguments(arguments))
        self._same[key] += 1
        return self._same[key] > SAME_CALLS_MAX

    def _asked(self, name: str, tool: OfferedTool, decision: Decision) -> Judged:
        serving = self._serving
        if serving.approvals and not tool.owner.hidden:
            if not (decision.by_request or serving.stored):
                # What a client keeps it can change: an operator's question needs an answer kept here.
                return _refused(tool, decision.rule, _NOT_STORED)
            owner = msgspec.structs.replace(tool.owner, asks=True)
            return Judged("ask", owner, tool, decision.rule)
        if self._waits:
            return self._counted(name, tool, "wait", decision.rule)
        return _refused(tool, decision.rule, "it needs approval, which cannot be asked for here")

    def _counted(self, name: str, tool: OfferedTool, fate: Fate, rule: str) -> Judged:
        most = self._serving.calls_max
        if most is not None and self.runs >= most:
            self.exhausted = True
            why = f"no more than {most} calls may be run (max_tool_calls)"
            return Judged("unseen", rule="max_tool_calls", why=why)
        uses_max = None if tool.builtin is None else tool.builtin.uses_max
        if uses_max is not None and self._uses[name] >= uses_max:
            return _refused(tool, "max_uses", f"max_uses_exceeded: it may be used {uses_max} times")
        self._uses[name] += 1
        self.runs += 1
        return Judged(fate, tool.owner, tool, rule)

    def _unknown(self, name: str) -> Judged:
        withheld = self._catalog.withheld.get(name)
        if withheld is not None:
            return Judged("refuse", withheld.owner, None, "not offered", withheld.rule)
        shown = plain_text(name, _NAME_CHARACTERS_SHOWN)
        return Judged("unseen", rule="no such tool", why=f"there is no tool {shown!r}")


def _refused(tool: OfferedTool, rule: str, why: str) -> Judged:
    return Judged("refuse", tool.owner, tool, rule, f"{why} ({rule})")
