"""Writer of `contents` and `systemInstruction`: the turns of a prompt in the order that this API insists on. Pure.

    user and model alternate               neighbours of one role are one content
    results come right behind the calls    all of them, in their order, before whatever the user says
    a call without a result                gets one that says so
    a result without a call                is told as text
    empty texts                            are left out

Thoughts go back only with their signature: without it they are no use to the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from smg_node.core.generation.call_arguments import (
    UNREADABLE_KEY,
    read_arguments,
    without_halves,
)
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaPart,
    TextPart,
    Turn,
    TurnBlock,
    blocks_of,
)
from smg_node.dialects.gemini.provider.media_parts import media_part
from smg_node.dialects.gemini.provider.model_traits import ModelTraits
from smg_node.dialects.gemini.signatures import STAND_IN

NO_RESULT: Final = "there is no result of this call"
_SYSTEMS: Final = ("system", "developer")
_RESULTS: Final = ("tool", "function")
_decode: Final = msgspec.json.Decoder().decode


def contents_of(
    prompt: ChatPrompt, traits: ModelTraits, issuer: str, ignored: list[str]
) -> dict[str, Any]:
    """Return `contents` and `systemInstruction`; opaque state of `issuer` goes along."""
    writer = _Writer(prompt, traits, issuer)
    for turn in prompt.turns:
        if turn.name is not None and turn.role not in _RESULTS:
            ignored.append(f"{prompt.where}.name")
        writer.add(turn)
    return writer.fields()


@dataclass(slots=True)
class _Call:
    """A call that waits for its result."""

    call_id: str
    name: str
    result: dict[str, Any] | None = None


@dataclass(slots=True)
class _Asked:
    """The user's content that is being written."""

    shown: list[dict[str, Any]] = field(default_factory=list)
    """What results show, where they cannot hold it."""
    said: list[dict[str, Any]] = field(default_factory=list)


class _Writer:
    """Writes contents, turn after turn."""

    def __init__(self, prompt: ChatPrompt, traits: ModelTraits, issuer: str) -> None:
        self._prompt = prompt
        self._traits = traits
        self._issuer = issuer
        self._systems: list[dict[str, Any]] = []
        self._contents: list[dict[str, Any]] = []
        self._waiting: list[_Call] = []
        self._asked: _Asked | None = None
        self._model: list[dict[str, Any]] = []
        """Parts of the model's content that is being written."""

    def add(self, turn: Turn) -> None:
        """Take the next turn."""
        if turn.role in _SYSTEMS:
            begun = self._contents or self._model or self._asked
            stays = self._prompt.systems_stay and begun
            (self._user().said if stays else self._systems).extend(_parts(turn))
        elif turn.role == "assistant":
            told = [block for block in blocks_of(turn) if self._is_told(block)]
            if told:
                self._answered()
                self._model += map(self._block, told)
        elif turn.role in _RESULTS:
            self._result(turn)
        else:
            parts = list(_parts(turn))
            if parts:
                self._user().said += parts

    def fields(self) -> dict[str, Any]:
        """Return what was written."""
        if self._asked is None and self._model and not self._prompt.continue_final_message:
            self._said()
        self._answered()
        self._said()
        contents, systems = self._contents, self._systems
        if not contents:
            # A request without contents is refused, so the instruction is what the user says.
            contents, systems = [{"role": "user", "parts": systems or [{"text": " "}]}], []
        told: dict[str, Any] = {"contents": contents}
        if systems:
            told["systemInstruction"] = {"parts": systems}
        return told

    # ── The user's ───────────────────────────────────────────────────────────

    def _user(self) -> _Asked:
        """Return the user's content that is being written: the model's before it is over."""
        if self._asked is None:
            self._said()
            self._asked = _Asked()
        return self._asked

    def _said(self) -> None:
        """End the model's content, if there is one."""
        if self._model:
            self._contents.append({"role": "model", "parts": self._model})
            self._model = []

    def _answered(self) -> None:
        """End the user's content, if there is one: no call before it is without a result now."""
        asked = self._asked
        if asked is None and (self._model or not self._waiting):
            return
        results = [self._result_part(call, call.result) for call in self._waiting]
        self._waiting, self._asked = [], None
        parts = results if asked is None else [*results, *asked.shown, *asked.said]
        if parts:
            self._contents.append({"role": "user", "parts": parts})

    def _result(self, turn: Turn) -> None:
        asked = self._user()
        found = [call for call in self._waiting if call.result is None]
        found = [call for call in found if call.call_id == turn.answers_call] or [
            call for call in found if not turn.answers_call and call.name == turn.name
        ]
        shown = [media_part(part) for part in turn.content or () if isinstance(part, MediaPart)]
        if not found:
            asked.said += [{"text": f"Result of {turn.name or 'a call'}: {_text(turn)}"}, *shown]
            return
        found[0].result = {"response": _response(_text(turn))}
        if shown and self._traits.shown_results:
            found[0].result["parts"] = shown
        else:
            asked.shown += shown

    def _result_part(self, call: _Call, result: dict[str, Any] | None) -> dict[str, Any]:
        said = {"response": {"error": NO_RESULT}} if result is None else result
        return {"functionResponse": {**self._named(call.call_id, call.name), **said}}

    # ── The model's ──────────────────────────────────────────────────────────

    def _is_told(self, block: TurnBlock) -> bool:
        signed = self._signature(block.opaque) != ""
        return signed or block.kind == "call" or (block.kind == "text" and block.text != "")

    def _block(self, block: TurnBlock) -> dict[str, Any]:
        signature = self._signature(block.opaque)
        signed = {"thoughtSignature": signature} if signature else {}
        if block.kind == "call":
            return self._call(block, signed)
        thought = {"thought": True} if block.kind == "reasoning" else {}
        return {"text": block.text, **thought, **signed}

    def _signature(self, opaque: tuple[Opaque, ...]) -> str:
        """Return the signature of a part, which has room for one."""
        own = [one for one in opaque if one.issuer == self._issuer and one.kind == SIGNATURE]
        return own[-1].data if own else ""

    def _call(self, block: TurnBlock, signed: dict[str, str]) -> dict[str, Any]:
        if not signed and self._traits.signs and not self._waiting:
            signed = {"thoughtSignature": STAND_IN}
        self._waiting.append(_Call(block.call_id, block.name))
        args = read_arguments(block.text)
        if args is None:
            args = {UNREADABLE_KEY: without_halves(block.text)}
        return {
            "functionCall": {**self._named(block.call_id, block.name), "args": args},
            **signed,
        }

    def _named(self, call_id: str, name: str) -> dict[str, str]:
        return (
            {"id": call_id, "name": name} if call_id and self._traits.call_ids else {"name": name}
        )


def _parts(turn: Turn) -> Iterator[dict[str, Any]]:
    content = turn.content
    if isinstance(content, str):
        content = (TextPart(content),)
    for part in content or ():
        if not isinstance(part, TextPart):
            yield media_part(part)
        elif part.text:
            yield {"text": part.text}


def _text(turn: Turn) -> str:
    content = turn.content
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if isinstance(part, TextPart))


def _response(text: str) -> dict[str, Any]:
    """Return what a result says as an object: the object that it is, else its text as `output`."""
    if text.startswith("{"):
        try:
            found = _decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
    return {"output": text}
