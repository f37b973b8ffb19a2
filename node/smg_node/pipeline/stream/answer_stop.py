"""Answer stop: stop strings of one choice, matched in its answer and not in its thoughts. Pure.

A client's stop strings are about what it is told as the answer, and a thought may have any text. So
the text of a thought, and the marks of the format around it, go to the parser past the stop strings;
white space before the first word of an answer is layout of the same kind. All else, calls with their
markup too, is matched before it is parsed.

The parser tells where a thought ends, a character at a time where a marker may stand. Whether an
answer begins with a mark of a thought it cannot tell before it has read it: so what may become one
is held here, until it is one or is text.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from smg_node.core.generation.request import Sampling
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.reading.scanner import Scanner
from smg_node.tokens.decoding.stop_strings import StopMachine

HandOn: TypeAlias = Callable[[str], None]
"""Takes text for the parser."""


class AnswerStop:
    """Stop strings of one choice, read by `parser`."""

    __slots__ = ("_before", "_machine", "_marks", "_reader")

    def __init__(self, strings: Sequence[str], *, keep: bool, parser: Parser) -> None:
        self._machine = StopMachine(strings, keep=keep)
        self._reader = self._marks = None
        if isinstance(parser, Scanner) and parser.thinks:
            parser.begin()
            self._reader, self._marks = parser.reader, parser.marks
        # The beginning of an answer, which may be the beginning of a mark.
        self._before = ""

    def feed(self, text: str, hand_on: HandOn) -> str | None:
        """Take more text, hand on what may leave now; return the stop string that is complete, if one is.

        After a match the answer is over, and nothing more may be fed.
        """
        reader = self._reader
        if reader is None:
            return self._match(text, hand_on)
        calm = reader.calm
        if calm is not None and not (self._before or self._machine.holds) and calm[1](text) is None:
            if calm[0] != "reasoning":
                return self._match(text, hand_on)
            hand_on(text)
            return None
        for character in text:
            matched = self._take(character, hand_on)
            if matched is not None:
                return matched
        return None

    def finish(self, hand_on: HandOn) -> str | None:
        """Hand on what is held, because no more text comes; return the stop string in it, if there is one."""
        before, self._before = self._before, ""
        matched = self._match(before, hand_on) if before else None
        if matched is None:
            hand_on(self._machine.finish())
        return matched

    def _take(self, character: str, hand_on: HandOn) -> str | None:
        reader, marks = self._reader, self._marks
        assert reader is not None, "without one nothing is looked at so closely"
        if reader.thinks:
            hand_on(character)
            return None
        if marks is None or not (self._before or (reader.begins and not self._machine.holds)):
            return self._answer(character, hand_on)
        if not self._before and character.isspace():
            hand_on(character)
            return None
        word, self._before = self._before + character, ""
        mark = marks.here(word, 0, ended=False)
        if mark is None:
            self._before = word
            return None
        if mark:
            hand_on(mark)
            return self.feed(word[len(mark) :], hand_on)
        return self._answer(word[0], hand_on) or self.feed(word[1:], hand_on)

    def _answer(self, character: str, hand_on: HandOn) -> str | None:
        matched = self._match(character, hand_on)
        reader = self._reader
        if matched is None and self._machine.holds and reader is not None and reader.thinks:
            # A mark began a thought, and behind it is no stop string of the answer's.
            hand_on(self._machine.finish())
        return matched

    def _match(self, text: str, hand_on: HandOn) -> str | None:
        said, matched = self._machine.feed(text)
        if said:
            hand_on(said)
        return matched


def stop_of(sampling: Sampling, parser: Parser) -> AnswerStop | None:
    """Return what ends a choice at a stop string, None where there are none."""
    if not sampling.stop:
        return None
    return AnswerStop(sampling.stop, keep=sampling.keep_stop, parser=parser)
