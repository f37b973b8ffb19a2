"""Answer stops: a client's stop strings, matched in the answer of an HTTP worker whose model thinks. Pure.

A worker matches the stop strings it is told in all that its model prints, so a word of the thought may
end an answer before it began. Which model thinks is known here by its name, its operator's word or
an earlier answer. Such a worker is not told them: they are matched here, in the content of each choice,
and the call is over when all choices are.

Of the others the first words are watched (`ThoughtWatch`): one that thinks, or that stopped before
it said anything, is asked once more without them, before its client has seen anything.
"""

from collections.abc import Sequence
from typing import Any, Final

from smg_node.pipeline.relay.filters.answer_filter import AnswerFilter, event_of, objects, text_at
from smg_node.pipeline.relay.filters.streamed_usage import StreamedUsage
from smg_node.pipeline.relay.filters.thought_rows import THOUGHT_FIELDS, move_rows
from smg_node.pipeline.relay.relayed_events import DONE
from smg_node.tokens.decoding.stop_strings import StopMachine

_OPENER: Final = "<think>"
_CLOSER: Final = "</think>"
"""Marks of a thought that a worker without a parser leaves in the content."""


class ThoughtSeenError(Exception):
    """The stop strings that the worker was told may have ended a thought. `thinks`: there was one."""

    def __init__(self, *, thinks: bool) -> None:
        super().__init__("the stop strings may have ended a thought")
        self.thinks = thinks


class ThoughtWatch(AnswerFilter):
    """Watches for a thought, until an answer has said something else."""

    def __init__(self) -> None:
        super().__init__()
        self._spoken = False
        self._texts: dict[int, str] = {}
        """The beginning of each choice's content, which may be the mark of a thought."""
        self._kept: list[bytes] = []

    def feed(self, piece: bytes) -> bytes:
        """See `AnswerFilter`; ThoughtSeenError before anything has passed."""
        return piece if self._spoken and not self._held else super().feed(piece)

    def chunk(self, chunk: dict[str, Any], raw: bytes) -> bytes:
        """See `AnswerFilter`."""
        if self._spoken:
            return raw
        self._kept.append(raw)
        spoken = False
        for choice in objects(chunk["choices"]):
            said = choice.get("delta")
            if text_at(said, *THOUGHT_FIELDS):
                raise ThoughtSeenError(thinks=True)
            spoken = self._speaks(choice, said) or spoken
        self._spoken = spoken
        return self.ending() if spoken else b""

    def ending(self) -> bytes:
        """See `AnswerFilter`."""
        kept, self._kept = self._kept, []
        return b"".join(kept)

    def whole(self, answer: dict[str, Any]) -> bool:
        """See `AnswerFilter`: a thought that was followed by an answer was not stopped."""
        for choice in objects(answer["choices"]):
            self._speaks(choice, choice.get("message"))
        return False

    def _speaks(self, choice: dict[str, Any], said: object) -> bool:
        """Return whether the choice has begun its answer; ThoughtSeenError if that may have been cut off."""
        index, finish = choice.get("index") or 0, choice.get("finish_reason")
        text = self._texts.get(index, "") + text_at(said, "content")
        self._texts[index] = text
        begun = text.lstrip()
        if begun.startswith(_OPENER) and _CLOSER not in begun:
            raise ThoughtSeenError(thinks=True)
        calls = isinstance(said, dict) and bool(said.get("tool_calls"))
        if calls or (begun and (finish or not _OPENER.startswith(begun))):
            return True
        if finish == "stop":
            raise ThoughtSeenError(thinks=bool(text_at(said, *THOUGHT_FIELDS)))
        return False


class WithheldStops(AnswerFilter):
    """Ends each of so many choices at a stop string that the worker was not told."""

    needed = True

    def __init__(
        self, strings: Sequence[str], *, keep: bool, answers: int, usage: StreamedUsage
    ) -> None:
        super().__init__()
        self._strings = strings
        self._keep = keep
        self._answers = answers
        self._usage = usage
        self._choices: dict[int, _ChoiceStop] = {}

    def chunk(self, chunk: dict[str, Any], raw: bytes) -> bytes:
        """See `AnswerFilter`."""
        choices = objects(chunk["choices"])
        empty = not choices
        changed = self._usage.take(chunk)
        kept: list[dict[str, Any]] = []
        for choice in choices:
            stop = self._of(choice)
            if stop.over:
                changed = True
                continue
            told = move_rows(choice, "delta")
            told = stop.take(choice) or told
            changed = told or changed
            if not (told and _is_silent(choice)):
                kept.append(choice)
        chunk["choices"] = kept
        if not changed:
            return raw
        shown = event_of(chunk) if kept or (empty and "usage" in chunk) else b""
        if len(self._choices) < self._answers or not all(
            one.over for one in self._choices.values()
        ):
            return shown
        self.over = True
        return shown + self._usage.event(chunk) + DONE

    def whole(self, answer: dict[str, Any]) -> bool:
        """See `AnswerFilter`."""
        choices = objects(answer["choices"])
        changes = [move_rows(one, "message") for one in choices]
        changes += [self._of(one).cut(one) for one in choices]
        return any(changes)

    def _of(self, choice: dict[str, Any]) -> "_ChoiceStop":
        index = choice.get("index") or 0
        found = self._choices.get(index)
        if found is None:
            found = self._choices[index] = _ChoiceStop(self._strings, keep=self._keep)
        return found


class _ChoiceStop:
    """Stop strings of one choice. What is `over` ended at one of them."""

    def __init__(self, strings: Sequence[str], *, keep: bool) -> None:
        self.over = False
        self._machine = StopMachine(strings, keep=keep)
        self._thought = False
        """Whether the choice has thought: white space before its first word is layout then."""
        self._before: str | None = ""
        """The beginning of the content, which may be the mark of a thought; None once that is known."""
        self._within: str | None = None
        """The end of a thought in the content that may be the beginning of its closer."""
        self._rows: list[Any] = []
        """Log probabilities of text that is held."""
        self._spare = 0
        """How many characters have passed whose rows have not."""

    def take(self, choice: dict[str, Any]) -> bool:
        """Take a choice of a chunk; whether it was changed."""
        said = choice.get("delta")
        text, finish = text_at(said, "content"), choice.get("finish_reason")
        if text_at(said, *THOUGHT_FIELDS):
            self._thought = True
        calls = isinstance(said, dict) and bool(said.get("tool_calls"))
        if not (text or finish or calls):
            return self._pass_rows(choice, 0)
        shown, matched = self._feed(text)
        if matched is None and (finish or calls):
            more, matched = self._flushed()
            shown += more
        changed = shown != text
        if changed:
            delta = choice["delta"] = dict(said) if isinstance(said, dict) else {}
            delta["content"] = shown
        if matched is not None:
            _end(choice, "delta", matched)
            self.over = changed = True
        ends = bool(finish) and matched is None
        return self._pass_rows(choice, len(shown), all_of_them=ends) or changed

    def cut(self, choice: dict[str, Any]) -> bool:
        """Cut a choice of a whole answer; whether it was changed."""
        said = choice.get("message")
        text = text_at(said, "content")
        self._thought = bool(text_at(said, *THOUGHT_FIELDS))
        shown, matched = self._feed(text)
        if matched is None:
            more, matched = self._flushed()
            shown += more
        if matched is None or not isinstance(said, dict):
            return False
        self.over = True
        said["content"] = shown
        _end(choice, "message", matched)
        self._pass_rows(choice, len(shown))
        return True

    def _feed(self, text: str) -> tuple[str, str | None]:
        """Return the text that may leave, and the stop string that is complete."""
        if self._before is not None:
            begun = self._before + text
            word = begun.lstrip()
            if len(word) < len(_OPENER) and _OPENER.startswith(word):
                self._before = begun
                return "", None
            self._before = None
            if word.startswith(_OPENER):
                self._thought, self._within = True, ""
            text = begun
        passed = ""
        if self._within is not None:
            passed, text = self._thought_in(text)
        if self._thought and text:
            word = text.lstrip()
            passed, text = passed + text[: len(text) - len(word)], word
            self._thought = not word
        shown, matched = self._machine.feed(text)
        return passed + shown, matched

    def _thought_in(self, text: str) -> tuple[str, str]:
        """Return what belongs to the thought in the content, and what stands behind it."""
        assert self._within is not None, "a thought is open"
        seen = self._within + text
        at = seen.find(_CLOSER)
        if at < 0:
            self._within = seen[-len(_CLOSER) + 1 :]
            return text, ""
        end = at + len(_CLOSER) - len(self._within)
        self._within = None
        return text[:end], text[end:]

    def _flushed(self) -> tuple[str, str | None]:
        """Return what was held, because no more text follows."""
        begun, self._before = self._before, None
        shown, matched = self._machine.feed(begun) if begun else ("", None)
        return (shown, matched) if matched is not None else (shown + self._machine.finish(), None)

    def _pass_rows(self, choice: dict[str, Any], shown: int, *, all_of_them: bool = False) -> bool:
        """Let out log probabilities with the text they are of; whether the choice was changed."""
        told = choice.get("logprobs")
        rows = told.get("content") if isinstance(told, dict) else None
        rows = rows if isinstance(rows, list) else []
        self._spare += shown
        waiting = [*self._rows, *rows]
        if not self.over and (all_of_them or not self._holds):
            at, self._spare = len(waiting), 0
        else:
            at = self._fitting(waiting)
        passed, self._rows = waiting[:at], waiting[at:]
        if passed == rows:
            return False
        choice["logprobs"] = {**(told if isinstance(told, dict) else {}), "content": passed}
        return True

    @property
    def _holds(self) -> bool:
        return self._machine.holds or bool(self._before)

    def _fitting(self, rows: Sequence[Any]) -> int:
        """Return how many rows are of text that has passed."""
        for at, row in enumerate(rows):
            size = len(text_at(row, "token"))
            if size > self._spare:
                return at
            self._spare -= size
        return len(rows)


def _is_silent(choice: dict[str, Any]) -> bool:
    """Whether all that a choice of a chunk said is held."""
    said, rows = choice.get("delta"), choice.get("logprobs")
    return not (
        choice.get("finish_reason")
        or (isinstance(said, dict) and any(said.values()))
        or (isinstance(rows, dict) and any(rows.values()))
    )


def _end(choice: dict[str, Any], place: str, matched: str) -> None:
    """End a choice at a stop string: what the worker said behind it is dropped."""
    said = choice.get(place)
    if isinstance(said, dict):
        said.pop("tool_calls", None)
    choice["finish_reason"] = "stop"
    choice["matched_stop" if "matched_stop" in choice else "stop_reason"] = matched
