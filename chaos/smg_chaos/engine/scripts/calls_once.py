"""Script of a model that calls a tool once: a call while its prompt ends in none of its results, a text afterwards.

Calls are printed as Qwen and Hermes print them, which is what the built-in template asks for. A result is known by the
marker that ends it there.
"""

import json
from collections.abc import Sequence
from typing import Final

from smg_chaos.engine.protocol.answers import Answer
from smg_chaos.engine.scripts.bundle import Bundle

ANSWER: Final = "Hello from a simulated engine that has read what its tool returned."
NUMBER: Final = "NUMBER"
"""What stands in arguments for a number that is another one in most requests."""
_NUMBERS: Final = 1_000_000
_END_OF_RESULT: Final = "</tool_response>"
_TAIL_TOKENS: Final = 48
"""The end of a prompt in which its last result ends: what a template prints behind it is shorter."""


class CallsOnce:
    """Calls `tool` with these arguments, then says `ANSWER`; ValueError where the arguments are no JSON object."""

    def __init__(self, bundle: Bundle, eos: int, tool: str, arguments: str) -> None:
        try:
            told = json.loads(arguments.replace(NUMBER, "0") or "{}")
        except ValueError as error:
            raise ValueError(f"calls-once: the arguments are no JSON: {error}") from error
        if not tool or not isinstance(told, dict):
            raise ValueError('calls-once: say calls-once:TOOL {"name": value}')
        self._bundle = bundle
        self._eos = eos
        self._call = (
            f'<tool_call>\n{{"name": {json.dumps(tool)}, "arguments": {arguments or "{}"}}}\n'
            "</tool_call>"
        )
        self._said = self._answer_of(ANSWER)

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return the call, or what is said once it has its result."""
        end = prompt[max(0, len(prompt) - _TAIL_TOKENS) :]
        if _END_OF_RESULT in self._bundle.decode(list(end)):
            return self._said
        number = hash((seed, choice, *prompt)) % _NUMBERS
        return self._answer_of(self._call.replace(NUMBER, str(number)))

    def _answer_of(self, text: str) -> Answer:
        ids = tuple(self._bundle.encode(text))
        return Answer((*ids, self._eos), ids)
