"""Model formats: reasoning and call formats of one model, compiled once and shared by all its
streams.
"""

from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias

from smg_node.core.generation.request import Tool
from smg_node.parsers.reading.answer_grammar import AnswerFormat
from smg_node.parsers.reading.format import (
    FormatRequest,
    JointFormat,
    Start,
    ThoughtFormat,
    ToolFormat,
    start_of,
    varied,
)
from smg_node.parsers.reading.parser import Parser, Plain
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.selection.chosen_formats import Chosen, Described
from smg_node.parsers.selection.parser_labels import TEMPLATE
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools
from smg_node.parsers.selection.schema_calls import bare_arguments, json_array

Expect: TypeAlias = Literal["native", "json_array", "bare_arguments"]
"""What calls look like: the model's own way, or what the grammar that was sent makes of them."""

_PLAIN: Final = Plain()


class Printing:
    """The formats of one model."""

    def __init__(self, chosen: Chosen, special_tokens: Collection[str] = ()) -> None:
        """Compile what was chosen; NOT_FOUND for an unknown format.

        `special_tokens` are the tokenizer's own: those that are no markers of the formats never become text.
        """
        self.chosen = chosen
        self.joint: JointFormat | None = None
        self.thought: ThoughtFormat | None = None
        self.tools: ToolFormat | None = None
        if chosen.reasoning in known_joint():
            self.joint = known_joint().get(chosen.reasoning)
        else:
            brought = chosen.described or Described()
            thought = brought.thought if chosen.reasoning == TEMPLATE else None
            tools = brought.tools if chosen.tools == TEMPLATE else None
            thought = thought or known_thoughts().get(chosen.reasoning)
            self.thought = varied(thought, chosen.options)
            if chosen.tools != "plain":
                self.tools = tools or known_tools().get(chosen.tools)
        self._silent = self.thought is not None and _unmarked(self.thought)
        self._special = tuple(sorted(special_tokens))
        self._odd: set[str] = set()
        self._compiled: dict[tuple[bool, tuple[str, ...]], AnswerFormat] = {}

    @property
    def plain(self) -> bool:
        """Whether there is nothing to read: no thoughts, no calls."""
        return self.joint is None and self.chosen.reasoning == "plain" and self.tools is None

    @property
    def ids(self) -> str:
        """The name of the format that gives ids of calls their form."""
        return self.chosen.tools

    def first(self, what: str) -> bool:
        """Note that an answer was odd; return whether none was in this way before."""
        known = what in self._odd
        self._odd.add(what)
        return not known

    def start(self, tail: str, *, continued: bool = False) -> Start:
        """Return where an answer to a prompt that ends in `tail` begins; see `start_of`."""
        form = self.joint if self.joint is not None else self.thought
        assert form is not None
        return start_of(tail, form.openers, form.closers, fixed=form.start, continued=continued)

    def missed_opener(self, text: str, *, thinks_first: bool = False) -> str:
        """Return what a prompt must have ended with to be followed by `text`, a whole answer; "" if nothing.

        That is an opener where the answer closes a thought that it does not open, or, with `thinks_first`, opens
        and closes none.
        """
        form = self.joint if self.joint is not None and self.joint.encloses else self.thought
        if form is None or not form.openers:
            return ""
        opened = _first_of(form.openers, text)
        closed = _first_of(form.closers, text)
        if closed < opened or (thinks_first and closed == opened):
            return form.openers[0]
        return ""

    def scanner(
        self,
        *,
        tools: Sequence[Tool],
        calls: bool,
        tail: str,
        new_id: NewId,
        expect: Expect = "native",
        named: str = "",
        continued: bool = False,
        keep_special: bool = False,
    ) -> Parser:
        """Return a new scanner of one choice's text.

        `calls` is False where calls are off: no tools, or `tool_choice: none`. `tail` is the end of the prompt
        (or, where a message is `continued`, that message). With `expect` other than native a call may also be
        what such a grammar makes; `named` is the function of `bare_arguments`. With `keep_special` the tokens
        that no format knows are text. `Plain` where there is nothing to look for in what is shown.
        """
        native = expect == "native"
        if self.joint is None and self._silent and native and not (calls and self.tools):
            return _PLAIN
        asked = FormatRequest({tool.name: tool for tool in tools})
        start = self.start(tail, continued=continued)
        if self.joint is not None and native:
            return Scanner(self.joint, asked=asked, start=start, new_id=new_id, calls=calls)
        read: list[ToolFormat] = []
        if calls:
            if expect == "json_array":
                read.append(json_array())
            elif expect == "bare_arguments":
                read.append(bare_arguments(named))
            if self.tools is not None:
                read.append(self.tools)
        if not read and self._silent:
            return _PLAIN
        named_id = self.tools.ids if self.tools is not None and self.tools.ids else None
        form = self._form(read, keep_special=keep_special)
        return Scanner(
            form,
            asked=asked,
            start=start,
            new_id=named_id(new_id) if named_id else new_id,
        )

    def _form(self, read: Sequence[ToolFormat], *, keep_special: bool) -> AnswerFormat:
        names = tuple(each.name for each in read)
        key = (keep_special, names)
        found = self._compiled.get(key)
        if found is None:
            thought = self.thought or ThoughtFormat(self.chosen.reasoning)
            found = AnswerFormat(thought, read, () if keep_special else self._controls(read))
            if not any(name.startswith("bare_arguments ") for name in names):
                self._compiled[key] = found
        return found

    def _controls(self, read: Sequence[ToolFormat]) -> tuple[str, ...]:
        """Return the special tokens that are dropped wherever they stand: those no format knows."""
        marks = [word for each in read for word in (*each.openers, *each.noise)]
        if self.thought is not None:
            marks += [*self.thought.openers, *self.thought.closers]
        text = "\n".join(marks)
        return tuple(token for token in self._special if token not in text)


def _first_of(words: Sequence[str], text: str) -> int:
    """Return where the first of `words` stands in `text`, its length if none does."""
    found = [at for at in map(text.find, words) if at >= 0]
    return min(found, default=len(text))


def _unmarked(thought: ThoughtFormat) -> bool:
    return not (thought.openers or thought.closers or thought.frames)
