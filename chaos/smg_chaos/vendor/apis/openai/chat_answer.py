"""Chat Completions answer: whole and as chunks, with what each vendor does otherwise (see `quirks`)."""

from typing import Any, Final

from smg_chaos.vendor.answers.answer import Answer, CallMade, Cost
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.wire.sse import DONE, data_event

_SAFE: Final = {"filtered": False, "severity": "safe"}
_FILTERS: Final = dict.fromkeys(("hate", "self_harm", "sexual", "violence"), _SAFE)
_COMMENT: Final = b": OPENROUTER PROCESSING\n\n"
_OBFUSCATION: Final = "aVzQ3xWk9"
_LOGPROB: Final = -0.125


def usage_of(call: Call, cost: Cost) -> dict[str, Any]:
    """Return what an answer cost, as this vendor counts."""
    quirks, apart = call.quirks, {"usage_apart", "usage_unsaid"} & call.quirks
    said = cost.answer - cost.thought if apart else cost.answer
    usage: dict[str, Any] = {
        "prompt_tokens": cost.prompt,
        "completion_tokens": said,
        "total_tokens": cost.prompt + cost.answer,
    }
    if "cached_at_top" in quirks:
        return {**usage, "num_cached_tokens": cost.cached}
    if "hit_tokens" in quirks:
        hit = {"prompt_cache_hit_tokens": cost.cached}
        usage |= {**hit, "prompt_cache_miss_tokens": cost.prompt - cost.cached}
        return {**usage, "completion_tokens_details": {"reasoning_tokens": cost.thought}}
    if "usage_unsaid" in quirks:
        return usage
    details = {"cached_tokens": cost.cached, "audio_tokens": 0}
    if call.traits.issuer == "openai" and call.traits.fixed_sampling:
        details["cache_write_tokens"] = cost.written
    usage["prompt_tokens_details"] = details
    usage["completion_tokens_details"] = {
        "reasoning_tokens": cost.thought,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    }
    return usage


def finish_of(call: Call, conversation: Conversation, answer: Answer) -> str | None:
    """Return the finish_reason; OpenAI ends a named tool choice with "stop"."""
    if "finish_optional" in call.quirks:
        return None
    ending = answer.draft.ending
    if ending == "calls":
        return "stop" if conversation.choice == "named" else "tool_calls"
    return {"length": "length", "filter": "content_filter"}.get(ending, "stop")


class Choice:
    """What a choice has of an answer, in this vendor's fields; the same for each of them."""

    def __init__(self, call: Call, answer: Answer) -> None:
        self._call = call
        self._answer = answer
        self._google = "call_ids_empty" in call.quirks

    def call_id(self, at: int) -> str:
        """Return the id of the call with that number."""
        if self._google:
            return ""
        return (
            f"call_{at}" if "call_counter" in self._call.quirks else self._answer.name("call_", at)
        )

    def call_head(self, at: int, one: CallMade) -> dict[str, Any]:
        """Return a call with all but its arguments."""
        function = {"name": one.name, "arguments": ""}
        head: dict[str, Any] = {"id": self.call_id(at), "type": "function", "function": function}
        if self._google and at == 0 and self._answer.thinks:
            seal = self._call.seals.seal("call", "google", one.name, self._answer.seed)
            head["extra_content"] = {"google": {"thought_signature": seal}}
        return head

    def calls(self) -> list[dict[str, Any]]:
        """Return all calls, whole."""
        made = []
        for at, one in enumerate(self._answer.calls):
            head = self.call_head(at, one)
            head["function"]["arguments"] = one.text
            made.append(head)
        return made

    def thought_fields(self, text: str, *, whole: bool) -> dict[str, Any]:
        """Return the fields of a thought's text; vendors of no quirk show none."""
        quirks = self._call.quirks
        if "reasoning_content" in quirks:
            return {"reasoning_content": text}
        if "thinking_parts" in quirks:
            part = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
            return {"content": [part]}
        if "reasoning" not in quirks:
            return {}
        details: dict[str, Any] = {"type": "reasoning.text", "text": text, "index": 0}
        if whole:
            details["signature"] = self.thought_seal()
        return {"reasoning": text, "reasoning_details": [details]}

    def thought_seal(self) -> str:
        """Return the signature of the thought."""
        return self._call.seals.seal("thought", "open", self._answer.thought, self._answer.seed)

    def message(self) -> dict[str, Any]:
        """Return the whole message."""
        answer, quirks = self._answer, self._call.quirks
        refused = answer.draft.ending == "refusal"
        nothing = "" if "snowflake" in quirks else None
        text: Any = None if refused else answer.text or nothing
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if answer.thought:
            fields = self.thought_fields(answer.thought, whole=True)
            if isinstance(fields.get("content"), list) and answer.text:
                fields["content"].append({"type": "text", "text": answer.text})
            message |= fields
        if answer.calls:
            message["tool_calls"] = self.calls()
        if self._call.hosting.models == "openai":
            message |= {"refusal": answer.text if refused else None, "annotations": []}
        return message


def whole_chat(call: Call, conversation: Conversation, answer: Answer) -> dict[str, Any]:
    """Return a whole answer."""
    count = call.body.get("n") or 1
    choice = {
        "message": Choice(call, answer).message(),
        "finish_reason": finish_of(call, conversation, answer),
        "logprobs": _logprobs(answer.draft.text) if call.body.get("logprobs") else None,
    }
    filtered = "content_filters" in call.quirks
    if filtered:
        choice["content_filter_results"] = _FILTERS
    if "finish_optional" in call.quirks:
        del choice["finish_reason"]
    usage = usage_of(call, _times(answer.cost, count))
    body: dict[str, Any] = {
        "id": answer.name("chatcmpl-"),
        "object": "chat.completion",
        "created": answer.created_s,
        "model": call.model,
        "choices": [{"index": at, **choice} for at in range(count)],
        "usage": usage,
    }
    if filtered:
        body["prompt_filter_results"] = _prompt_filters()
    if call.hosting.models == "openai":
        body |= {"service_tier": call.tier, "system_fingerprint": "fp_standin"}
    if "x_groq" in call.quirks:
        body["x_groq"] = {"id": answer.name("req_")}
    return body


def chat_frames(call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
    """Return an answer as chunks."""
    return _Chunks(call, conversation, answer).all()


class _Chunks:
    """Writer of the chunks of one answer."""

    def __init__(self, call: Call, conversation: Conversation, answer: Answer) -> None:
        self._call = call
        self._quirks = call.quirks
        self._answer = answer
        self._choice = Choice(call, answer)
        self._finish = finish_of(call, conversation, answer)
        self._count = call.body.get("n") or 1
        self._frames: list[Frame] = []
        options = call.body.get("stream_options") or {}
        self._usage_asked = bool(options.get("include_usage"))
        self._obfuscates = call.kind == "openai" and options.get("include_obfuscation") is not False
        self._logprobs = bool(call.body.get("logprobs"))
        self._usage = usage_of(call, _times(answer.cost, self._count))
        self._head = {
            "id": answer.name("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": answer.created_s,
            "model": call.model,
        }
        if call.hosting.models == "openai":
            self._head |= {"service_tier": call.tier, "system_fingerprint": "fp_standin"}

    def all(self) -> list[Frame]:
        """Return all frames."""
        if "comments" in self._quirks:
            self._frames += [Frame(_COMMENT)] * 2
        if "content_filters" in self._quirks:
            first = {"id": "", "object": "", "created": 0, "model": ""}
            filters = {"prompt_filter_results": _prompt_filters()}
            self._frames.append(Frame(data_event({"choices": [], **first, **filters})))
        for index in range(self._count):
            self._body(index)
        for index in range(self._count):
            self._end(index)
        self._tail()
        return self._frames

    def _put(self, choices: list[dict[str, Any]], tokens: int = 0, **more: Any) -> None:
        head = self._head
        if "new_ids" in self._quirks:
            head = {**head, "id": self._answer.name("chatcmpl-", len(self._frames))}
        chunk = {**head, "choices": choices, **more}
        if self._usage_asked and "usage" not in more and not self._quirks:
            chunk["usage"] = None
        if self._obfuscates and choices:
            chunk["obfuscation"] = _OBFUSCATION[: len(self._frames) % len(_OBFUSCATION)]
        self._frames.append(Frame(data_event(chunk), tokens))

    def _delta(self, index: int, delta: dict[str, Any], tokens: int = 0) -> None:
        if "content_null" in self._quirks:
            delta.setdefault("content", None)
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": None}
        if self._logprobs:
            choice["logprobs"] = _logprobs((delta["content"],)) if delta.get("content") else None
        if "content_filters" in self._quirks:
            choice["content_filter_results"] = _FILTERS if delta.get("content") else {}
        if "finish_optional" in self._quirks:
            del choice["finish_reason"]
        self._put([choice], tokens)

    def _body(self, index: int) -> None:
        answer, calls = self._answer, self._answer.calls
        refused = answer.draft.ending == "refusal"
        role: dict[str, Any] = {"role": "assistant", "content": None if calls else ""}
        alone = len(calls) == 1 and not answer.text and not answer.thought
        if alone:
            role["tool_calls"] = [{"index": 0, **self._choice.call_head(0, calls[0])}]
        if self._call.hosting.models == "openai":
            role["refusal"] = None
        self._delta(index, role)
        self._thought(index)
        for at, piece in enumerate(answer.draft.text):
            if "comments" in self._quirks and at == 1:
                self._frames.append(Frame(_COMMENT))
            self._delta(index, {"refusal" if refused else "content": piece}, 1)
        for at, one in enumerate(calls):
            if not alone:
                self._delta(
                    index, {"tool_calls": [{"index": at, **self._choice.call_head(at, one)}]}
                )
            for piece in one.slices:
                part = {"index": at, "function": {"arguments": piece}}
                self._delta(index, {"tool_calls": [part]}, 1)

    def _thought(self, index: int) -> None:
        if not self._answer.thought:
            return
        for piece in self._answer.draft.thought:
            if fields := self._choice.thought_fields(piece, whole=False):
                self._delta(index, fields, 1)
        if "reasoning" in self._quirks:
            row = {"type": "reasoning.text", "signature": self._choice.thought_seal(), "index": 0}
            self._delta(index, {"reasoning_details": [row]})

    def _end(self, index: int) -> None:
        if "finish_optional" in self._quirks:
            return
        delta: dict[str, Any] = {"content": ""} if "finish_twice" in self._quirks else {}
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": self._finish}
        if "reasoning" in self._quirks and "comments" in self._quirks:
            choice["native_finish_reason"] = self._finish
        more: dict[str, Any] = {}
        if "usage_in_finish" in self._quirks:
            more["usage"] = self._usage
        if "x_groq" in self._quirks:
            more["x_groq"] = {"id": self._answer.name("req_"), "usage": self._usage}
        self._put([choice], **more)
        if "finish_twice" in self._quirks:
            self._put([choice], usage=self._usage)

    def _tail(self) -> None:
        own = {"usage_in_finish", "x_groq", "finish_twice"} & self._quirks
        if self._usage_asked and not own:
            self._put([], usage=self._usage)
        if "moderation" in self._quirks:
            self._put([], moderation={"model": "omni-moderation-latest", "flagged": False})
        self._frames.append(Frame(DONE))


def _prompt_filters() -> list[dict[str, Any]]:
    return [{"prompt_index": 0, "content_filter_results": _FILTERS}]


def _times(cost: Cost, count: int) -> Cost:
    if count == 1:
        return cost
    return Cost(
        cost.prompt,
        cost.cached,
        cost.written,
        cost.written_long,
        cost.answer * count,
        cost.thought * count,
    )


def _logprobs(pieces: tuple[str, ...]) -> dict[str, Any]:
    rows = [
        {
            "token": piece,
            "logprob": _LOGPROB,
            "bytes": list(piece.encode()),
            "top_logprobs": [],
        }
        for piece in pieces
    ]
    return {"content": rows, "refusal": None}
