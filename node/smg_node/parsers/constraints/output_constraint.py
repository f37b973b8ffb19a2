"""Output constraint: builds the grammar that holds a model's calls and answer to the requested
form. Pure.

A call can be demanded in the model's own format where that has tags and the engine's grammars take
them; else as JSON, which every grammar can hold to. A grammar holds from the first token unless its
engine waits for a thought to end, so where thoughts may come first they are made part of it. What
no grammar can be made to promise is left to the model, and named in `ignored`, or refused where the
client insisted on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import ChatPrompt, Constraint, GrammarStart, Tool, ToolChoice
from smg_node.parsers.constraints.schema_bundle import array_of_calls
from smg_node.parsers.constraints.structural_tags import (
    NO_PARAMETERS,
    Format,
    Grammars,
    after_thought,
    answer_format,
    calls_format,
    either,
    nothing_but_calls,
    structures_text,
    tag,
    tags_text,
)
from smg_node.parsers.reading.format import Start, Tag
from smg_node.parsers.selection.model_formats import Expect, Printing

STRICT: Final = "tools.strict"
"""The name under which it is told that arguments are not held to their schemas."""


@dataclass(frozen=True, slots=True)
class Forced:
    """Constraint of one prompt's answers, and the format of calls under it.

    `named` is the function of bare arguments. `ignored` names the wishes that nothing can promise here. `tail` is
    what the prompt is to be taken to end in, where the grammar leaves no room for the thought that it opened.
    `unheld` says what was asked for but the engine is not held to: a call, or an answer's form.
    """

    constraint: Constraint | None = None
    expect: Expect = "native"
    named: str = ""
    ignored: tuple[str, ...] = ()
    tail: str = ""
    unheld: tuple[str, ...] = ()


def callable_tools(prompt: ChatPrompt) -> Sequence[Tool]:
    """Return the tools that may be called."""
    choice = prompt.choice
    if choice.mode == "none":
        return ()
    if choice.mode == "named":
        return [tool for tool in prompt.tools if tool.name == choice.name]
    allowed = choice.allowed
    return [tool for tool in prompt.tools if allowed is None or tool.name in allowed]


def held_tools(prompt: ChatPrompt, asked: Constraint | None, printing: Printing) -> Sequence[Tool]:
    """Return the tools whose schemas may become part of a grammar."""
    tools = callable_tools(prompt)
    if prompt.choice.mode in ("required", "named"):
        return tools
    strict = [tool for tool in tools if tool.strict]
    if strict or asked is not None or prompt.choice.allowed is not None:
        styles = {each.style for each in _tags(printing)}
        return strict if styles <= {"json"} else tools
    return ()


def force(
    prompt: ChatPrompt,
    asked: Constraint | None,
    printing: Printing,
    grammars: Grammars,
    *,
    tail: str,
    continued: bool = False,
) -> Forced:
    """Return the constraint for the choice of tools and for the form that was `asked` for.

    `tail` is the end of the prompt, see `Printing.scanner`. INVALID_REQUEST where both are wanted and no
    grammar can say both, or a strict form where there are no grammars.
    """
    return _Forcing(prompt, asked, printing, grammars, tail, continued).forced()


class _Forcing:
    def __init__(
        self,
        prompt: ChatPrompt,
        asked: Constraint | None,
        printing: Printing,
        grammars: Grammars,
        tail: str,
        continued: bool,
    ) -> None:
        self.choice: ToolChoice = prompt.choice
        self.tools = callable_tools(prompt)
        self.asked = asked
        self.grammars = grammars
        self.printing = printing
        self.tail = tail.rstrip()
        self.start: Start = printing.start(tail, continued=continued)
        self.thoughts = _thoughts(printing, self.tail, self.start)
        self.tags = _tags(printing)
        self.strict = any(tool.strict for tool in self.tools)
        self.limited = self.choice.allowed is not None

    @property
    def formats(self) -> bool:
        """Whether the engine takes structural tags of the newer form."""
        return "structural_tag" in self.grammars.kinds and self.grammars.tags == "formats"

    def forced(self) -> Forced:
        if self.tools and self.choice.mode in ("required", "named"):
            return self._demanded()
        answer = self._answer_only() if self.asked is not None else None
        if answer is not None and answer.unheld:
            return answer
        if self.asked is not None and self.asked.kind != "structural_tag" and self._can_call():
            return self._answer_or_calls(self.asked)
        if answer is not None:
            return answer
        if self.tools and (self.strict or self.limited):
            return self._offered()
        return Forced()

    def _can_call(self) -> bool:
        """Whether the model may choose to call: without a format of calls there is nothing to choose."""
        printing = self.printing
        return bool(self.tools) and (printing.tools is not None or printing.joint is not None)

    # ── Calls ────────────────────────────────────────────────────────────────

    def _demanded(self) -> Forced:
        """Return how at least one call is demanded; a form that was asked for is that of an answer, which there is not."""
        where = self.choice.where
        expect: Expect = "native" if self.printing.joint is not None else "json_array"
        if self.tags and self.formats:
            calls = calls_format(
                self.tags, self.tools, loose=False, at_least_one=True, single=self._single
            )
            return replace(self._tagged(calls, where), expect=expect)
        if "json_schema" not in self.grammars.kinds:
            return Forced(expect=expect, ignored=(where,), unheld=("call",))
        named = self.choice.name if self.choice.mode == "named" else ""
        schema = self._parameters[named] if named else self._array()
        forced = self._as_json(schema, where)
        return replace(forced, expect="bare_arguments" if named else "json_array", named=named)

    def _offered(self) -> Forced:
        """Return how calls are held to what they may be, where the model chooses to call."""
        ignored = ((self.choice.where,) if self.limited else ()) + (
            (STRICT,) if self.strict else ()
        )
        text = None
        if self.tags and self.formats:
            calls = calls_format(
                self.tags, self.tools, loose=True, at_least_one=False, single=self._single
            )
            # Free text holds any thought.
            text = tags_text(calls)
        elif self.tags and self.grammars.tags == "structures":
            text = structures_text(self.tags, self.tools, loose=True)
        if text is None:
            return Forced(ignored=ignored, unheld=("call",))
        return Forced(Constraint("structural_tag", text, self.choice.where))

    @property
    def _single(self) -> bool:
        return self.choice.mode == "named" or not self.choice.parallel

    @property
    def _parameters(self) -> dict[str, Mapping[str, Any]]:
        return {
            tool.name: NO_PARAMETERS if tool.parameters is None else tool.parameters
            for tool in self.tools
        }

    def _array(self) -> Mapping[str, Any]:
        return array_of_calls(self._parameters, parallel=self.choice.parallel)

    # ── Answers ──────────────────────────────────────────────────────────────

    def _answer_only(self) -> Forced:
        asked = self.asked
        assert asked is not None
        if asked.kind not in self.grammars.kinds:
            if asked.strict:
                raise unsupported(
                    f"this engine cannot constrain its output by {asked.kind}", asked.where
                )
            return Forced(ignored=(asked.where,), unheld=("form",))
        if asked.kind == "structural_tag" or not (self.thoughts or self._frame):
            return Forced(asked)
        if self._waits:
            return Forced(replace(asked, begins=self._waiting))
        if not self.formats:
            return Forced(asked, tail=self._closed)
        return self._tagged(self._framed(answer_format(asked)), asked.where)

    def _answer_or_calls(self, asked: Constraint) -> Forced:
        if not (self.tags and self.formats):
            raise unsupported(
                f"{asked.where} and tools cannot both be honoured for this model: no grammar can say"
                f" both; leave out {asked.where}, or the tools, or set {self.choice.where}",
                asked.where,
            )
        calls = nothing_but_calls(self.tags, self.tools, loose=True, single=self._single)
        return self._tagged(either([self._framed(answer_format(asked)), calls]), asked.where)

    @property
    def _frame(self) -> Tag | None:
        """The text around an answer of JSON."""
        joint = self.printing.joint
        return joint.answer if joint is not None else None

    def _framed(self, form: Format) -> Format:
        """Return an answer between what the model's format has around it."""
        frame = self._frame
        if frame is None:
            return form
        begin = "" if self.tail.endswith(frame.begin) else frame.begin
        return tag(begin, form, frame.end)

    # ── Thoughts ─────────────────────────────────────────────────────────────

    @property
    def _waits(self) -> bool:
        """Whether the engine lets the open thought end before its grammar begins."""
        if self.start != "inside" or self._frame is not None:
            return False
        return self.grammars.waits or (self.grammars.can_wait and not self.formats)

    @property
    def _closed(self) -> str:
        """The text that would end the reasoning that the prompt has opened; "" where there is
        none.
        """
        form = self.printing.joint or self.printing.thought
        return form.closers[0] if self.start == "inside" and form and form.closers else ""

    @property
    def _waiting(self) -> GrammarStart:
        return "engine" if self.grammars.waits else "after_thought"

    def _tagged(self, rest: Format, where: str) -> Forced:
        if self._waits:
            return Forced(
                Constraint("structural_tag", tags_text(rest), where, begins=self._waiting)
            )
        form = after_thought(self.thoughts, rest, sure=self.start == "inside")
        text = tags_text(form)
        return Forced(Constraint("structural_tag", text, where, begins="first_token"))

    def _as_json(self, schema: Mapping[str, Any], where: str) -> Forced:
        """Return the answer as this JSON alone, behind its thought where that can be said."""
        text = msgspec.json.encode(schema).decode()
        plain = Constraint("json_schema", text, where)
        if self._waits:
            return Forced(replace(plain, begins=self._waiting))
        if self.thoughts and self.formats:
            return self._tagged({"type": "json_schema", "json_schema": schema}, where)
        return Forced(replace(plain, begins="first_token"), tail=self._closed)


def _tags(printing: Printing) -> Sequence[Tag]:
    form = printing.joint if printing.joint is not None else printing.tools
    tags = form.tags if form is not None else ()
    return [each for each in tags if each.form in ("", printing.chosen.form)]


def _thoughts(printing: Printing, tail: str, start: Start) -> list[tuple[str, str]]:
    """Return between what a thought may stand that comes first; its beginning is "" where the prompt has it."""
    if start == "content":
        return []
    if printing.joint is not None:
        spelled = printing.joint.thought
        pairs = [(spelled.begin, spelled.end)] if spelled is not None else []
    else:
        form = printing.thought
        openers, closers = (form.openers, form.closers) if form is not None else ((), ())
        if not closers:
            return []
        alike = len(openers) == len(closers)
        pairs = (
            list(zip(openers, closers, strict=True))
            if alike
            else [(opener, closers[0]) for opener in openers]
        )
        if not pairs:
            pairs = [("", closers[0])]
    if start == "undecided":
        return [pair for pair in pairs if pair[0]]
    ends = [end for begin, end in pairs if begin and tail.endswith(begin)]
    return [("", (ends or [pairs[0][1]])[0])] if pairs else []
