"""Answer of generateContent: whole and as chunks, signatures and finish reasons as Gemini gives them."""

from typing import Any, Final

from smg_chaos.vendor.answers.answer import Answer, Cost
from smg_chaos.vendor.apis.call import Call

_FINISH: Final = {
    "stop": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "stop_sequence": "STOP",
    "filter": "SAFETY",
}
_IDS_SHARE: Final = 9
_Part = dict[str, Any]


def usage_of(cost: Cost) -> dict[str, Any]:
    """Return what an answer cost: thoughts stand beside the candidates' tokens."""
    usage: dict[str, Any] = {
        "promptTokenCount": cost.prompt,
        "candidatesTokenCount": cost.answer - cost.thought,
        "totalTokenCount": cost.prompt + cost.answer,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": cost.prompt}],
    }
    if cost.thought:
        usage["thoughtsTokenCount"] = cost.thought
    if cost.cached:
        usage["cachedContentTokenCount"] = cost.cached
    return usage


class ContentParts:
    """The parts of one answer, in pieces, with the tokens of each."""

    def __init__(self, call: Call, answer: Answer) -> None:
        self._call = call
        self._answer = answer

    def _seal(self, kind: str, content: str) -> str:
        return self._call.seals.seal(kind, "google", content, self._answer.seed)

    def pieces(self) -> list[tuple[_Part, int]]:
        """Return all parts as they are streamed; the text's signature comes last, with an empty text."""
        answer, parts = self._answer, list[tuple[_Part, int]]()
        if answer.thought:
            parts += [({"text": piece, "thought": True}, 1) for piece in answer.draft.thought]
        parts += [({"text": piece}, 1) for piece in answer.draft.text]
        for at, one in enumerate(answer.calls):
            parts.append((self._function(at), len(one.slices)))
        if self._signs_text():
            parts.append(({"text": "", "thoughtSignature": self._seal("text", "")}, 0))
        return parts

    def whole(self) -> list[_Part]:
        """Return all parts in one piece; there the text itself is signed."""
        answer, parts = self._answer, list[_Part]()
        if answer.thought:
            parts.append({"text": answer.thought, "thought": True})
        if answer.text:
            text = {"text": answer.text}
            if self._signs_text():
                text["thoughtSignature"] = self._seal("text", "")
            parts.append(text)
        return [*parts, *(self._function(at) for at in range(len(answer.calls)))]

    def _signs_text(self) -> bool:
        answer = self._answer
        signs = self._call.traits.signs_calls and answer.thinks
        return signs and bool(answer.text) and not answer.calls

    def _function(self, at: int) -> _Part:
        one = self._answer.calls[at]
        called: _Part = {"name": one.name, "args": one.arguments}
        if self._call.traits.signs_calls and int(self._answer.seed[:2], 16) % _IDS_SHARE == 0:
            called["id"] = self._answer.name("", at)
        part: _Part = {"functionCall": called}
        if at == 0 and self._answer.thinks:
            part["thoughtSignature"] = self._seal("call", one.name)
        return part


def whole_contents(call: Call, answer: Answer) -> dict[str, Any]:
    """Return a whole answer."""
    if answer.draft.ending == "refusal":
        return _blocked(call, answer)
    return _chunk(call, answer, ContentParts(call, answer).whole(), last=True)


def content_chunks(call: Call, answer: Answer) -> list[tuple[dict[str, Any], int]]:
    """Return an answer as chunks, with the tokens in each; the last one has the finish reason."""
    if answer.draft.ending == "refusal":
        return [(_blocked(call, answer), 0)]
    pieces = [] if answer.draft.ending == "filter" else ContentParts(call, answer).pieces()
    chunks = [(_chunk(call, answer, [part], last=False), tokens) for part, tokens in pieces[:-1]]
    rest = [part for part, _ in pieces[-1:]]
    return [*chunks, (_chunk(call, answer, rest, last=True), sum(one for _, one in pieces[-1:]))]


def _frame(call: Call, answer: Answer) -> dict[str, Any]:
    return {
        "usageMetadata": usage_of(answer.cost),
        "modelVersion": call.model,
        "responseId": answer.name("resp"),
    }


def _chunk(call: Call, answer: Answer, parts: list[_Part], *, last: bool) -> dict[str, Any]:
    ending = answer.draft.ending
    content: dict[str, Any] = {"role": "model"}
    if parts:
        content = {"parts": parts, "role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if last:
        candidate["finishReason"] = _FINISH[ending]
        if ending == "calls":
            candidate["finishMessage"] = "Model generated function call(s)."
        if ending == "filter":
            del candidate["content"]
    return {"candidates": [candidate], **_frame(call, answer)}


def _blocked(call: Call, answer: Answer) -> dict[str, Any]:
    """Return the answer to a prompt that is blocked: 200, and no candidates."""
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_frame(call, answer)}
