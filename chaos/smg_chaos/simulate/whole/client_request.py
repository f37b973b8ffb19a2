"""Client request: one question, the answer so far, and whether the answer is right."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from smg_chaos.engine.protocol.answers import Following
from smg_chaos.simulate.whole.letter_vocabulary import IDS

Ending: TypeAlias = Literal["", "whole", "failed", "limited", "cut", "refused"]


@dataclass(slots=True, eq=False)
class Request:
    """A question that one node is asked. `tries` of its client include this one."""

    number: int
    prompt: str
    tokens: int
    since_us: int
    tries: int = 1
    told: str = ""
    ending: Ending = ""
    why: str = ""
    gone: bool = False
    """Whether its client hung up: it hears nothing any more."""
    expected: str = field(default="", init=False)

    def __post_init__(self) -> None:
        said = Following(self.prompt.encode(), IDS).slice(0, self.tokens)
        self.expected = bytes(said).decode()

    def hear(self, text: str) -> str:
        """Take more of the answer; return what is wrong with it, "" if nothing is."""
        if self.gone:
            return ""
        self.told += text
        if self.ending:
            return f"request {self.number} was told {text!r} after its end"
        if not self.expected.startswith(self.told):
            return f"request {self.number} was told {self.told!r} of {self.expected!r}"
        return ""

    def end(self, ending: Ending, why: str = "") -> str:
        """Take the end; return what is wrong with it, "" if nothing is."""
        if self.gone:
            return ""
        if self.ending:
            return f"request {self.number} ended twice: {self.ending}, then {ending}"
        self.ending, self.why = ending, why
        if ending == "whole" and self.told != self.expected:
            return f"request {self.number} is whole with {self.told!r} of {self.expected!r}"
        return ""
