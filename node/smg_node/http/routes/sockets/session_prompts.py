"""Session prompts: what a realtime answer starts from as a request for a generation, cut to its model's context."""

from collections.abc import Collection
from typing import Final, Protocol

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import GenerateRequest, Prompt
from smg_node.core.json_cursor import quoted
from smg_node.dialects.realtime.effects import Start
from smg_node.history.context.fitted_conversation import fitted_conversation
from smg_node.http.ports.tokens import TokenService


class LeavesOut(Protocol):
    """Interface of a session, as far as it is told what no later prompt has either."""

    def left_out(self, response_id: str, places: Collection[int]) -> None:
        """Note which places of an answer's history were left out."""
        ...


class SessionPrompts:
    """Makes the requests of one session, whose model counts as `measure` says."""

    def __init__(self, measure: "SessionMeasure") -> None:
        self._measure: Final = measure

    async def request(self, start: Start, session: LeavesOut) -> GenerateRequest:
        """Return the request of an answer; INVALID_REQUEST `context_length_exceeded` where even the newest is too long."""
        rule = start.truncation
        fitted = await fitted_conversation(start.ask, start.history, rule, self._measure)
        if fitted.left_out and rule is not None and rule.ratio < 1.0:
            session.left_out(start.response_id, fitted.left_out)
        return fitted.request


class SessionMeasure:
    """Tokens of the model `name`; `context` is how many it takes. `tokens` is None where its workers alone can count."""

    def __init__(self, name: str, context: int | None, tokens: TokenService | None) -> None:
        self.name: Final = name
        self.context: Final = context if tokens is not None else None
        self._tokens: Final = tokens

    def check(self, where: str) -> None:
        """Return if prompts can be counted; INVALID_REQUEST for the field `where` if not."""
        if self._tokens is None:
            why = f"the tokens of {quoted(self.name)} cannot be counted here"
            raise unsupported(why, where)

    async def count(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has."""
        self.check("model")
        assert self._tokens is not None, "as checked"
        return len((await self._tokens.tokenize(self.name, prompt)).ids)
