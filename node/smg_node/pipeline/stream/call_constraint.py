"""Call constraint: grammar or schema sent with an engine call, and a check of its answers. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from smg_node.core.generation.events import BlockEnd, Event, Finish
from smg_node.core.generation.request import ChatPrompt, Constraint, Prompt, Sampling
from smg_node.engines.contracts.grammar_mapping import grammars_of
from smg_node.engines.engine import Abilities, ModelCard
from smg_node.parsers.constraints.output_constraint import Forced, force, held_tools
from smg_node.parsers.constraints.structural_tags import NO_PARAMETERS
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.stream.output_reader import tail_of

NOT_CALLED: Final = "call_not_made"
"""An oddity: a call was demanded of an engine that cannot be held to one, and there was none."""
NOT_FORMED: Final = "form_not_kept"
"""An oddity: JSON was demanded of an engine that cannot be held to it, and the answer was none."""


def forced(
    prompt: Prompt,
    text: str,
    printing: Printing,
    sampling: Sampling,
    card: ModelCard,
    abilities: Abilities,
) -> Forced:
    """Return the output constraint of answers to `prompt`, rendered as `text`, on engines of this
    card.

    See `force`. Prompts other than chats have no tool calls and no reasoning: their constraint is
    the client's own, and that the engine supports it has been checked.
    """
    asked = sampling.constraint
    if asked is None and not (isinstance(prompt, ChatPrompt) and prompt.tools):
        return _FREE
    grammars = grammars_of(card, abilities)
    if isinstance(prompt, ChatPrompt):
        tail, continued = tail_of(prompt, text)
        return force(prompt, asked, printing, grammars, tail=tail, continued=continued)
    if asked is None or asked.kind in grammars.kinds:
        return Forced(asked)
    return Forced(ignored=(asked.where,), unheld=("form",))


def schemas_of(prompt: Prompt, asked: Constraint | None, printing: Printing) -> list[Constraint]:
    """Return the schemas of tools that may become part of a grammar, each as a constraint to be checked,
    and the grammars of custom tools.
    """
    if not isinstance(prompt, ChatPrompt) or not prompt.tools:
        return []
    return forms_of(prompt) + [
        Constraint("json_schema", msgspec.json.encode(tool.parameters).decode(), tool.where)
        for tool in held_tools(prompt, asked, printing)
        if tool.parameters is not None and tool.parameters != NO_PARAMETERS
    ]


def forms_of(prompt: ChatPrompt) -> list[Constraint]:
    """Return the grammars of custom tools, to be checked like those that engines are sent."""
    return [tool.form for tool in prompt.tools if tool.form is not None]


_FREE: Final = Forced()


@dataclass(slots=True)
class ConstraintCheck:
    """Checks answers whose engine could not enforce the constraint."""

    unheld: Sequence[Sequence[str]]
    """For each choice what it is not held to."""
    notes: dict[str, int] = field(default_factory=dict)
    _called: set[int] = field(default_factory=set)
    _texts: dict[int, list[str]] = field(default_factory=dict)

    def look(self, events: Sequence[Event]) -> None:
        """Check each answer that is over."""
        for event in events:
            if isinstance(event, BlockEnd):
                if event.kind == "text":
                    self._texts.setdefault(event.choice, []).append(event.text)
                elif event.kind != "reasoning":
                    self._called.add(event.choice)
            elif isinstance(event, Finish):
                self._judge(event.choice)

    def _judge(self, choice: int) -> None:
        text = "".join(self._texts.pop(choice, ()))
        wanted = self.unheld[choice]
        if choice in self._called:
            return
        if "call" in wanted:
            self._note(NOT_CALLED)
        if "form" in wanted and not _is_json(text):
            self._note(NOT_FORMED)

    def _note(self, what: str) -> None:
        self.notes[what] = self.notes.get(what, 0) + 1


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True
