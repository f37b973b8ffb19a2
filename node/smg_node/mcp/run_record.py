"""Run record: what is known of one run, so that it happens once, or that it is said that it may have.

    meant ──▶ sent ──▶ done                 an answer came, good or bad, or it is said that none will
      ▲        │
      └────────┘ the connection broke       once more at most, with the same key

`meant` is before a byte leaves: whoever finds it may run it. What was `sent` and has no answer may have run. It is sent
again only where the tool's rule lets it; of everything else its model and its client are told. Pure.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from smg_node.mcp.catalog.hints import Hints
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.server_spec import ServerSpec
from smg_node.mcp.tools.tool_result import CallResult

RunState: TypeAlias = Literal["meant", "sent", "done"]
Recovery: TypeAlias = Literal["run", "repeat", "give_up", "show"]
"""What whoever finds the record of a run does with it: runs it, sends it again with its key, says that it may have run,
or shows its result.
"""
_MAY: Final = "may have run"
NOT_REPEATED: Final = "it was not repeated"
MAY_HAVE_RUN: Final = f"{_MAY}, not repeated"
MAY_HAVE_RUN_TWICE: Final = "sent twice, may have run"
SENDS_MAX: Final = 2
UNANSWERED: Final = (FailureKind.LOST, FailureKind.TIMEOUT)


def may_repeat(spec: ServerSpec, hints: Hints) -> bool:
    """Whether a run of a tool that may have happened is sent again."""
    if spec.replay == "hinted":
        return hints.read_only or hints.idempotent
    return spec.replay == "always"


def recovery(state: RunState, *, repeats: bool, sends: int = 1) -> Recovery:
    """Return what to do with a run whose node died, or whose record is found; `repeats` as by `may_repeat`.

    `sends` is how often it was sent by now: its own node may have sent it again already, and there is no third time.
    """
    match state:
        case "meant":
            return "run"
        case "sent":
            return "repeat" if repeats and sends < SENDS_MAX else "give_up"
        case "done":
            return "show"


class RunRecord:
    """Course of one run under its key. `repeats`: it may be sent again where it may have run."""

    __slots__ = ("_again", "_lost", "key", "repeats", "state")

    def __init__(self, key: str, *, repeats: bool) -> None:
        self.key = key
        self.state: RunState = "meant"
        self.repeats = repeats
        self._again = False
        """Whether it was begun a second time; there is no third."""
        self._lost: Failure | None = None
        """What its first call broke with, if it may have run by that."""

    def sending(self) -> None:
        """Take note that a first byte may leave now."""
        assert self.state != "done", "what is over is not sent"
        self.state = "sent"

    def heard(self, outcome: CallResult | Failure) -> CallResult | Failure | None:
        """Take what came of a call: return what the run ends with, None where it is to be called once more."""
        assert self.state != "done", "a run ends once"
        if not isinstance(outcome, Failure):
            self.state = "done"
            return outcome
        if self._goes_on(outcome):
            self._lost = outcome if outcome.sent else None
            self._again = True
            self.state = "meant"
            return None
        self.state = "done"
        lost = self._lost
        if lost is not None and outcome.sent:
            return outcome.with_note(MAY_HAVE_RUN_TWICE)
        if outcome.kind in UNANSWERED:
            return _unrepeated(outcome) if outcome.sent or lost is not None else outcome
        if lost is None:
            return outcome
        # Nothing was sent the second time, and still it is not true that it was not run.
        told = _unrepeated(lost)
        return msgspec.structs.replace(told, message=f"{told.message}: {outcome.message}")

    def _goes_on(self, outcome: Failure) -> bool:
        """Whether it is called once more: its connection broke, and it cannot have run, or may run again."""
        if self._again or outcome.kind is not FailureKind.LOST:
            return False
        return self.repeats or not outcome.sent


def _unrepeated(failure: Failure) -> Failure:
    return failure.with_note(NOT_REPEATED if _MAY in failure.message else MAY_HAVE_RUN)
