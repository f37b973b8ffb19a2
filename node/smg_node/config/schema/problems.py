"""Problems of a configuration, as lines an operator can act on, and the error that carries them."""

from collections.abc import Sequence
from dataclasses import dataclass

# More than these scroll the first one, which is often the cause, off the screen.
_SHOWN_MAX = 50
_VALUE_MAX_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the knob (or word), what is wrong with it, and where it was given."""

    subject: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        subject = f"{self.subject}: " if self.subject else ""
        place = f" ({self.place})" if self.place else ""
        line = f"{subject}{self.message}{place}"
        return printable(line)


class ConfigurationError(Exception):
    """The configuration cannot be used; `problems` holds everything found in one go, at least one."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        assert problems
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return one line a problem, bounded, the last one saying how many were left out."""
        lines = [str(problem) for problem in self.problems[:_SHOWN_MAX]]
        if len(self.problems) > _SHOWN_MAX:
            lines.append(f"… and {len(self.problems) - _SHOWN_MAX} more")
        return lines


def shown(value: object) -> str:
    """Return `value` as it may stand in a message: short, and quoted if it is text."""
    words = repr(value)
    return words if len(words) <= _VALUE_MAX_CHARACTERS else f"{words[:_VALUE_MAX_CHARACTERS]}…"


def printable(line: str) -> str:
    """Return `line` as one line that cannot disturb a terminal, whatever a value or file name holds."""
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in line)


def kind_text(value: object) -> str:
    """Return what a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {shown(value)}"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"the text {shown(value)}"
