"""Differences between two programs' readings of one answer, attributed by the known content of the
answer.

A difference is *theirs* where we read what was printed and they do not, *ours* the other way round,
and *both* where neither does. Each is listed with what was unusual about its answer, the most
telling first.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from smg_chaos.opinion.samples import Sample, shown
from smg_node.core.generation.pieces import Arguments, Call, Reasoning, Text
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing

Wrong: TypeAlias = Literal["theirs", "ours", "both"]
PARTS: Final = ("calls", "arguments", "text", "thought")


@dataclass(frozen=True, slots=True)
class Heard:
    """Reading of one program: functions' names, their arguments, the text, the reasoning."""

    calls: tuple[str, ...]
    arguments: tuple[Any, ...]
    text: str
    thought: str

    def part(self, name: str) -> Any:
        """Return one of `PARTS`."""
        return getattr(self, name)


@dataclass(slots=True)
class Differences:
    """All differences of one format in one part of the answers."""

    wrong: Wrong
    count: int = 0
    hard: Counter[str] = field(default_factory=Counter)
    example: tuple[str, Any, Any, Any] | None = None
    """The shortest answer, what it says, what we read, what they read."""


def truth(sample: Sample) -> Heard:
    """Return the known content of the answer."""
    return Heard(
        tuple(name for name, _ in sample.calls),
        tuple(dict(arguments) for _, arguments in sample.calls),
        sample.said,
        sample.thought,
    )


def ours(sample: Sample) -> Heard:
    """Return what our parsers read, by characters: the worst case of a stream."""
    chosen = Chosen(tools=sample.ours) if sample.calls else Chosen(reasoning=sample.ours)
    parser = Printing(chosen).scanner(
        tools=sample.tools,
        calls=bool(sample.tools),
        tail=sample.prompt,
        new_id=lambda name, ordinal: f"{name}:{ordinal}",
    )
    pieces = [piece for character in sample.text for piece in parser.feed(character)]
    pieces += parser.finish()
    names: list[str] = []
    arguments: list[list[str]] = []
    text: list[str] = []
    thought: list[str] = []
    for piece in pieces:
        match piece:
            case Call():
                names.append(piece.name)
                arguments.append([])
            case Arguments():
                arguments[-1].append(piece.text)
            case Text():
                text.append(piece.text)
            case Reasoning():
                thought.append(piece.text)
    return _heard(names, ["".join(parts) for parts in arguments], "".join(text), "".join(thought))


def theirs(sample: Sample, answer: dict[str, Any]) -> Heard:
    """Return the reading in the other program's answer."""
    functions = [call["function"] for call in answer.get("tool_calls", ())]
    return _heard(
        [function["name"] for function in functions],
        [function["arguments"] for function in functions],
        answer.get("remaining_text" if sample.calls else "normal_text") or "",
        answer.get("reasoning_text") or "",
    )


def compare(
    told: Sequence[tuple[Sample, Heard, Heard]],
) -> dict[tuple[str, str, str], Differences]:
    """Return the differences by (our format, their parser, part), worst first within each.

    White space at the ends of texts and thoughts is layout to some and not to others: it does not count.
    """
    found: dict[tuple[str, str, str], Differences] = {}
    for sample, we, they in told:
        said = truth(sample)
        for part in PARTS:
            right, one, other = (_plain(heard.part(part)) for heard in (said, we, they))
            if one == other and one == right:
                continue
            wrong: Wrong = "theirs" if one == right else "ours" if other == right else "both"
            key = (sample.ours, sample.theirs, f"{part} ({wrong} wrong)")
            differences = found.setdefault(key, Differences(wrong))
            differences.count += 1
            differences.hard.update(sample.hard or {"nothing unusual"})
            if differences.example is None or len(sample.text) < len(differences.example[0]):
                differences.example = (sample.text, right, one, other)
    return found


def _heard(names: list[str], arguments: list[str], text: str, thought: str) -> Heard:
    return Heard(tuple(names), tuple(shown(one) for one in arguments), text, thought)


def _plain(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value
