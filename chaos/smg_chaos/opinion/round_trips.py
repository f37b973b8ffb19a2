"""Round trips: answers rendered by a published chat template and read back by the parsers
recognised for it.

A template renders a model's own earlier answers. What it renders is what the model was trained to
print, so the parsers must read it as that answer again: the same calls, arguments, reasoning and
text. A template may leave parts out, and then there is nothing to read; what it does render has to
be read back.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final, Literal, TypeAlias

from smg_chaos.opinion.past_answers import ANSWERS, TOOLS
from smg_node.core.errors import SmgError
from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.core.generation.request import ChatPrompt, Thinking, Turn
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.recognition import Clues, recognise
from smg_node.prompts.analysis.template_selection import TemplateTexts
from smg_node.prompts.renderer import Renderer, RenderOptions

Verdict: TypeAlias = Literal["equal", "no calls", "refuses", "excused", "DIFFERENT"]

_ASKED: Final = Turn("user", "What now? <think>Not a thought.</think>")
_NOW: Final = datetime(2026, 11, 3, 9, 30, tzinfo=UTC)
_BEGINS_AND_ENDS: Final = {"bos_token": "<s>", "eos_token": "</s>"}
_TOKEN: Final = re.compile(
    r"""<[|｜][^<>\n'"{}]{1,30}[|｜]?>|</?[\w:]{1,25}[|｜]?>|\[/?[A-Z_]{3,20}\]|<\|[a-z_"]+>"""
)
"""What looks like a token of a tokenizer's own, in a template's text."""
_TAG: Final = re.compile(r"</?[a-z_:]+>")
"""What may be a token or spelled: a parser may not count on its being dropped."""
_HALF_TOKEN: Final = re.compile(r"[<\[\]][^<>\[\]\s]*\Z")
_TAIL: Final = 200


@dataclass(frozen=True, slots=True)
class Trip:
    """One round trip of an answer: its content, as far as the template shows it, and what was read
    of it.

    `left_out` are the parts that the template does not print, `refusal` its error where it prints
    nothing.
    """

    kind: str
    printed: str = ""
    said: Mapping[str, Any] | None = None
    heard: Mapping[str, Any] | None = None
    left_out: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def wrong(self) -> tuple[str, ...]:
        """The parts that were read back differently."""
        if self.said is None or self.heard is None:
            return ()
        return tuple(
            part for part, value in self.said.items() if _exact(value) != _exact(self.heard[part])
        )


@dataclass(frozen=True, slots=True)
class Journey:
    """All answers through one template. `excused` has the kinds that may differ, each with its reason."""

    name: str
    reasoning: str
    tools: str
    trips: tuple[Trip, ...]
    excused: Mapping[str, str]
    refusal: str = ""

    @property
    def different(self) -> tuple[Trip, ...]:
        """The trips with a part that was read back differently and no known reason for it."""
        return tuple(trip for trip in self.trips if trip.wrong and trip.kind not in self.excused)

    @property
    def verdict(self) -> Verdict:
        """Verdict over all trips; answers that a template refuses count only where it refuses all
        calls.
        """
        if self.different:
            return "DIFFERENT"
        if any(trip.wrong for trip in self.trips):
            return "excused"
        calling = [trip for trip in self.trips if ANSWERS[trip.kind].calls]
        if self.refusal or all(trip.refusal for trip in calling):
            return "refuses"
        return "no calls" if all("calls" in trip.left_out or trip.refusal for trip in calling) else "equal"  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on answers that were not read back whole, each with their kinds."""
        if self.refusal:
            return (self.refusal,)
        found: dict[str, list[str]] = {}
        for trip in self.trips:
            reason = self._reason(trip)
            if reason:
                found.setdefault(reason, []).append(trip.kind)
        return tuple(f"{reason} [{'; '.join(kinds)}]" for reason, kinds in found.items())

    def _reason(self, trip: Trip) -> str:
        if trip.refusal:
            return f"refuses: {trip.refusal}"
        if trip.wrong:
            return self.excused.get(trip.kind, f"otherwise in {', '.join(trip.wrong)}")
        if not trip.left_out or (self.verdict == "no calls" and "calls" in trip.left_out):
            return ""
        return f"shows no {', no '.join(trip.left_out)}"


def travel(name: str, template: str, excused: Mapping[str, str]) -> Journey:
    """Return the round trip of every answer through the template of a model of that name."""
    tokens = frozenset(_TOKEN.findall(template))
    chosen = recognise(Clues((name,), template, tokens))
    try:
        renderer = Renderer(
            TemplateTexts({"default": template}, name),
            _BEGINS_AND_ENDS,
            options=RenderOptions(),
            monotonic_s=monotonic,
            call_ids=chosen.tools,
        )
    except SmgError as error:
        return Journey(name, chosen.reasoning, chosen.tools, (), excused, error.message)
    ending = _ending(renderer)
    special = {token for token in tokens if not _TAG.fullmatch(token)}
    printing = Printing(chosen, special | _last_tokens(renderer) | {*_BEGINS_AND_ENDS.values()})
    trips = tuple(_trip(kind, renderer, printing, ending) for kind in ANSWERS)
    return Journey(name, chosen.reasoning, chosen.tools, trips, excused)


def _told(renderer: Renderer, *turns: Turn) -> str:
    """Return the conversation as the template shows it; with a question alone, up to where an answer begins."""
    thinking = Thinking(on=True)
    asks = len(turns) == 1
    prompt = ChatPrompt(turns, tools=TOOLS, thinking=thinking, add_generation_prompt=asks)
    return renderer.render(prompt, now=_NOW)


def _ending(renderer: Renderer) -> str:
    """Return what the template puts behind every answer: an engine stops there, so it is never
    parsed.
    """
    try:
        one, two = (_told(renderer, _ASKED, Turn("assistant", text)) for text in ("One.", "Zwei!"))
    except SmgError:
        return ""
    return one[len(one) - _alike(one[::-1], two[::-1]) :]


def _alike(one: str, two: str) -> int:
    """Return how many characters both begin with."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(two)))


def _last_tokens(renderer: Renderer) -> set[str]:
    """Return what answers end with: a template may put a token's name together, and print it whole."""
    found: set[str] = set()
    for kind in ("text", "call"):
        try:
            found |= {*_TOKEN.findall(_told(renderer, _ASKED, ANSWERS[kind]))[-1:]}
        except SmgError:
            continue
    return {token for token in found if not _TAG.fullmatch(token)}


def _trip(kind: str, renderer: Renderer, printing: Printing, ending: str) -> Trip:
    answer = ANSWERS[kind]
    try:
        asked, told = _told(renderer, _ASKED), _told(renderer, _ASKED, answer)
    except SmgError as error:
        return Trip(kind, refusal=error.message)
    tail, printed = _parted(asked, told.removesuffix(ending))
    said, left_out = _shown(answer, printed)
    return Trip(kind, printed, said, _heard(printed, tail, printing), left_out)


def _parted(asked: str, told: str) -> tuple[str, str]:
    """Return the end of the prompt, and the answer that stands behind it.

    Where a past answer begins otherwise than the prompt asks for one (an opened thought, and the answer has
    none), the prompt counts as far as both are alike, and never into a token.
    """
    cut = _alike(asked, told)
    if cut < len(asked) and (half := _HALF_TOKEN.search(told, max(0, cut - _TAIL), cut)):
        cut = half.start()
    return told[max(0, cut - _TAIL) : cut], told[cut:]


def _shown(answer: Turn, printed: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what of an answer stands in the text, and the names of the parts that do not."""
    calls = [call for call in answer.calls if call.name in printed]
    text, thought = str(answer.content or ""), answer.reasoning or ""
    left_out = []
    if answer.calls and len(calls) < len(answer.calls):
        left_out.append("second call" if calls else "calls")
    if text not in printed:
        text = ""
        left_out.append("text")
    if thought not in printed:
        thought = ""
        left_out.append("thought")
    said = {
        "calls": [call.name for call in calls],
        "arguments": [json.loads(call.arguments) for call in calls],
        "text": text,
        "thought": thought,
    }
    return said, tuple(left_out)


def _heard(printed: str, tail: str, printing: Printing) -> dict[str, Any]:
    parser = printing.scanner(
        tools=TOOLS, calls=True, tail=tail, new_id=lambda name, ordinal: f"{name}:{ordinal}"
    )
    pieces = [piece for character in printed for piece in parser.feed(character)]
    pieces += parser.finish()
    return {
        "calls": [piece.name for piece in pieces if isinstance(piece, Call)],
        "arguments": _arguments(pieces),
        "text": "".join(piece.text for piece in pieces if isinstance(piece, Text)).strip(),
        "thought": "".join(piece.text for piece in pieces if isinstance(piece, Reasoning)).strip(),
    }


def _arguments(pieces: list[Piece]) -> list[Any]:
    """Return each call's arguments; where they are no JSON, their text."""
    texts: list[list[str]] = []
    for piece in pieces:
        if isinstance(piece, Call):
            texts.append([])
        elif isinstance(piece, Arguments):
            texts[-1].append(piece.text)
    return [_loaded("".join(parts)) for parts in texts]


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return f"no JSON: {text}"


def _exact(value: Any) -> str:
    """Return what is equal for equal values only: in Python true is 1 and 3 is 3.0."""
    return json.dumps(value, sort_keys=True)
