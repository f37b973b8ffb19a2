"""Chosen formats: names of a model's reasoning and call formats, with the evidence for each."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from smg_node.parsers.reading.format import ThoughtFormat, ToolFormat

Source: TypeAlias = Literal[
    "settings", "worker", "response template", "chat template", "configuration", "name", "nothing"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence that decided: its source, and a text for people."""

    source: Source = "nothing"
    what: str = ""

    def __str__(self) -> str:
        if self.source == "nothing":
            return "nothing says otherwise"
        return f"{self.source}: {self.what}"


@dataclass(frozen=True, slots=True)
class Described:
    """The formats that a checkpoint describes; None for what it says nothing of."""

    thought: ThoughtFormat | None = None
    tools: ToolFormat | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """Names of a model's formats; `plain` where there is nothing to read.

    A joint format stands in both places. `options` vary the reasoning format (`format.varied`). `form` is a
    further hint inside the tool format ("" for none). `warnings` are disagreements between two evidences.
    """

    reasoning: str = "plain"
    tools: str = "plain"
    options: frozenset[str] = frozenset()
    form: str = ""
    why_reasoning: Evidence = field(default_factory=Evidence)
    why_tools: Evidence = field(default_factory=Evidence)
    warnings: tuple[str, ...] = ()
    described: Described | None = None
    """What `response_template` stands for, where a checkpoint describes its answers itself."""
