"""Tool call: the course of one call from the first request to its result, with whatever lies between. Pure.

A server may want the call again (a session that is gone, a header that did not fit, more rounds), ask something back,
or answer with a task that is asked for until it is over. Each answer goes in, and what is to be done next comes out.
A call that was answered "session gone", or refused for its revision or its headers, was never worked on: it is sent
once more. A task goes on at the server whatever becomes of connections, so it is asked for again where one broke.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from smg_node.mcp.failures import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Failure,
    FailureKind,
    refused,
)
from smg_node.mcp.limits import ROUNDS_MAX
from smg_node.mcp.session.forgotten_session import forgets
from smg_node.mcp.session.session import Outcome, Session
from smg_node.mcp.tools.tool_result import (
    CallResult,
    InputRequired,
    TaskAtWork,
    ToolAnswer,
    read_result,
    read_task,
)
from smg_node.mcp.wire.messages import WireError, json_value, one_line

_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 0.25
_AWAY: Final = (429, 502, 503, 504)
"""Statuses of a server, or of what stands before it, that is there again later."""
UNHEARD_MAX: Final = 8
"""So often in a row a task is asked for in vain: with the pauses between, for a minute and a half."""
_UNHEARD_S: Final = 1.0
_UNHEARD_S_MAX: Final = 20.0


class Send(NamedTuple):
    """Send a request, after so many seconds. `is_call`: its parameters are those of the tool."""

    method: str
    params: Mapping[str, Any]
    after_s: float = 0.0
    is_call: bool = True


class Reopen(NamedTuple):
    """Open the server anew, then go on with `again`."""

    keep_verdict: bool


class Relist(NamedTuple):
    """List the tools anew, then go on with `again`."""


class Ended(NamedTuple):
    """The call is over."""

    outcome: CallResult | Failure


CallStep: TypeAlias = Send | Reopen | Relist | Ended
Answerer: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any] | Failure]
"""Answers what a server asks back: requests by its key to answers by that key, or why the call ends."""


class PassedInput(NamedTuple):
    """Input that is asked of the caller's own client: the call ends when the server asks, and is made again with answers.

    `asked` hears what the server wants, with its state. `capabilities` are those of the client that may be asked.
    `answers` and `state` are those of the call that is made again; None where it is the first.
    """

    asked: Callable[[InputRequired], None]
    capabilities: Mapping[str, Any]
    answers: Mapping[str, Any] | None = None
    state: str | None = None


class Arguments(NamedTuple):
    """Arguments of a call: their JSON text in one line, exactly as it was given, and their values."""

    text: Raw
    values: Mapping[str, Any]


def read_arguments(text: str | bytes) -> Arguments | Failure:
    """Return the arguments that a model wrote, an empty text for none; a failure, not sent, for what is no object."""
    try:
        spelled = text.encode() if isinstance(text, str) else text
        values = json_value(spelled) if spelled.strip() else {}
    except (WireError, UnicodeEncodeError) as error:
        return Failure(
            FailureKind.PROTOCOL, INVALID_PARAMS, f"the arguments are {error}", sent=False
        )
    if not isinstance(values, dict):
        return Failure(
            FailureKind.PROTOCOL, INVALID_PARAMS, "the arguments are no object", sent=False
        )
    return Arguments(one_line(spelled) if spelled.strip() else Raw(b"{}"), values)


def with_argument(arguments: Arguments, name: str, value: str) -> Arguments:
    """Return the arguments with one that this node sets; the text of the others stays as it is, if that can be."""
    values = {**arguments.values, name: value}
    if name in arguments.values:
        return Arguments(Raw(msgspec.json.encode(values)), values)
    first = msgspec.json.encode({name: value})[:-1]
    rest = bytes(arguments.text)[1:].lstrip()
    return Arguments(Raw(first + (b"," if arguments.values else b"") + rest), values)


def declined(requests: Mapping[str, Any]) -> Mapping[str, Any] | Failure:
    """Return refusals of what a server asks a person, or a failure where it asks what was never offered."""
    for asked in requests.values():
        method = asked.get("method") if isinstance(asked, dict) else None
        if method != "elicitation/create":
            return refused(f"the server asks for {method!r:.60}, which is not offered", sent=True)
    return {key: {"action": "decline"} for key in requests}


class ToolCall:
    """Machine of one call: `first`, then `heard` after each `Send`, `again` after `Reopen` and `Relist`."""

    def __init__(
        self,
        tool: str,
        arguments: Arguments,
        answerer: Answerer = declined,
        passed: PassedInput | None = None,
    ) -> None:
        self.task_id = ""
        """The server's task that runs the call, "" where there is none."""
        self._params: Mapping[str, Any] = {"name": tool, "arguments": arguments.text}
        self._answerer = answerer
        self._passed = passed
        self._rounds = 0
        self._pause_s = _PAUSE_S
        self._unheard = 0
        """How often in a row the task was asked for in vain."""
        self._reopened = False
        self._relisted = False
        self._answered_keys: frozenset[str] = frozenset()

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """What of the caller's client the server may use, None where it has none."""
        return self._passed.capabilities if self._passed is not None else None

    def first(self) -> Send:
        """Return the first request."""
        passed = self._passed
        if passed is None or (passed.answers is None and passed.state is None):
            return Send("tools/call", self._params)
        params = dict(self._params)
        if passed.answers is not None:
            params["inputResponses"] = passed.answers
        if passed.state is not None:
            params["requestState"] = passed.state
        return Send("tools/call", params)

    def again(self, failure: Failure | None = None) -> CallStep:
        """Return the next step after the server was opened or listed anew, or was not."""
        return Ended(failure) if failure is not None else self.first()

    def heard(self, session: Session, outcome: Outcome) -> CallStep:
        """Return the next step after an answer in that session."""
        if isinstance(outcome, Failure):
            return self._failed(session, outcome)
        self._unheard = 0
        modern = session.revision.modern
        answer: ToolAnswer
        if self.task_id:
            answer = read_task(outcome.result)
        else:
            answer = read_result(outcome.result, modern=modern)
        match answer:
            case CallResult() | Failure():
                return Ended(answer)
            case InputRequired(requests=requests, state=state):
                if self._passed is not None and requests:
                    self._passed.asked(answer)
                    return Ended(refused("the server asks the client for input", sent=True))
                return self._next_round(requests, state)
            case TaskAtWork():
                return self._poll(answer)

    def updated(self, outcome: Outcome) -> CallStep:
        """Return the next step after `tasks/update`, whose result says nothing."""
        return Ended(outcome) if isinstance(outcome, Failure) else self._ask_task(_PAUSE_S_MAX)

    def _failed(self, session: Session, failure: Failure) -> CallStep:
        if self.task_id:
            return self._unheard_of_task(failure)
        if forgets(session, failure) and not self._reopened:
            self._reopened = True
            return Reopen(keep_verdict=True)
        if failure.kind is FailureKind.PROTOCOL and session.revision.modern:
            if failure.code == HEADER_MISMATCH and not self._relisted:
                self._relisted = True
                return Relist()
            if failure.code == UNSUPPORTED_VERSION and not self._reopened:
                self._reopened = True
                return Reopen(keep_verdict=False)
        return Ended(failure)

    def _next_round(self, requests: Mapping[str, Any], state: str | None) -> CallStep:
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            return Ended(refused(f"the server wants more than {ROUNDS_MAX} rounds", sent=True))
        params = dict(self._params)
        if state is not None:
            params["requestState"] = state
        if not requests:
            pause, self._pause_s = self._pause_s, min(self._pause_s * 2, _PAUSE_S_MAX)
            return Send("tools/call", params, pause)
        answers = self._answerer(requests)
        if isinstance(answers, Failure):
            return Ended(answers)
        return Send("tools/call", {**params, "inputResponses": answers})

    def _poll(self, task: TaskAtWork) -> CallStep:
        self.task_id = self.task_id or task.task_id
        asked = {key: one for key, one in task.requests.items() if key not in self._answered_keys}
        if not asked:
            return self._ask_task(task.poll_s)
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            return Ended(refused(f"the server wants more than {ROUNDS_MAX} rounds", sent=True))
        answers = self._answerer(asked)
        if isinstance(answers, Failure):
            return Ended(answers)
        self._answered_keys |= asked.keys()
        params = {"taskId": self.task_id, "inputResponses": answers}
        return Send("tasks/update", params, is_call=False)

    def _unheard_of_task(self, failure: Failure) -> CallStep:
        away = failure.kind is FailureKind.HTTP and failure.code in _AWAY
        if not away and failure.kind is not FailureKind.LOST:
            return Ended(failure)
        if self._unheard >= UNHEARD_MAX:
            return Ended(
                failure.with_note(f"the server was asked {UNHEARD_MAX} times for its task")
            )
        pause_s = min(_UNHEARD_S * 2**self._unheard, _UNHEARD_S_MAX)
        self._unheard += 1
        return self._ask_task(max(pause_s, min(failure.retry_after_s or 0.0, _UNHEARD_S_MAX)))

    def _ask_task(self, after_s: float) -> Send:
        return Send("tasks/get", {"taskId": self.task_id}, after_s, is_call=False)
