"""Small APIs of OpenAI: legacy completions and embeddings."""

from hashlib import blake2b
from typing import Any, Final

from smg_chaos.vendor.answers.answer import Answer, Cost
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.body_checks import texts, typed
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.apis.openai.chat_answer import usage_of
from smg_chaos.vendor.errors.envelopes import inband_body
from smg_chaos.vendor.errors.vendor_error import VendorError, invalid
from smg_chaos.vendor.wire.sse import DONE, data_event

_DIMENSIONS: Final = 16
_HALF: Final = 127.5


class CompletionsApi:
    """Legacy completions; see `Api`."""

    content_type = "text/event-stream"

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        prompts = texts(call.body.get("prompt"))
        if not prompts:
            raise invalid("you must provide a prompt parameter", "prompt")
        conversation = Conversation(
            model=call.model, streamed=typed(call.body, "stream", bool) or False
        )
        typed(call.body, "stream_options", dict)
        conversation.turns = len(prompts)
        conversation.answer_max = typed(call.body, "max_tokens", int) or _DIMENSIONS
        conversation.stops = texts(call.body.get("stop"))
        for prompt in prompts:
            conversation.add(prompt.encode())
        conversation.user(prompts[-1])
        return conversation

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        return {**self._object(call, answer, answer.text, self._finish(answer))} | {
            "usage": _plain_usage(call, answer.cost)
        }

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as chunks."""
        frames = [
            Frame(data_event(self._object(call, answer, piece, None)), 1)
            for piece in answer.draft.text
        ]
        frames.append(Frame(data_event(self._object(call, answer, "", self._finish(answer)))))
        if (call.body.get("stream_options") or {}).get("include_usage"):
            last = self._object(call, answer, "", None)
            last |= {"choices": [], "usage": _plain_usage(call, answer.cost)}
            frames.append(Frame(data_event(last)))
        return [*frames, Frame(DONE)]

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as a chunk."""
        return data_event(inband_body(error, call.hosting.family, request_id))

    def _finish(self, answer: Answer) -> str:
        return "length" if answer.draft.ending == "length" else "stop"

    def _object(self, call: Call, answer: Answer, text: str, finish: str | None) -> dict[str, Any]:
        choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
        return {
            "id": answer.name("cmpl-"),
            "object": "text_completion",
            "created": answer.created_s,
            "model": call.model,
            "choices": [choice],
        }


def _plain_usage(call: Call, cost: Cost) -> dict[str, Any]:
    usage = usage_of(call, cost)
    return {key: usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}


def embeddings(call: Call, inputs: list[str], tokens: int) -> dict[str, Any]:
    """Return vectors made of digests: equal texts have equal ones."""
    size = typed(call.body, "dimensions", int) or _DIMENSIONS
    rows = [
        {"object": "embedding", "index": at, "embedding": _vector(text, size)}
        for at, text in enumerate(inputs)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": call.model, "usage": usage}


def _vector(text: str, size: int) -> list[float]:
    vector: list[float] = []
    while len(vector) < size:
        digest = blake2b(text.encode(), digest_size=64, salt=len(vector).to_bytes(8, "big"))
        vector += [(byte - _HALF) / _HALF for byte in digest.digest()]
    return vector[:size]
