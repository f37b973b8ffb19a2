"""Responses answer: the object, its items, and the events that tell it piece by piece."""

from typing import Any

from smg_chaos.vendor.answers.answer import Answer, Cost
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.apis.openai.responses_request import ENCRYPTED, THOUGHT_MARK
from smg_chaos.vendor.wire.sse import DONE, data_event, data_first_event, named_event

_Item = dict[str, Any]


def usage_of(call: Call, cost: Cost) -> dict[str, Any]:
    """Return what an answer cost."""
    told = cost.answer - cost.thought if "usage_apart" in call.quirks else cost.answer
    return {
        "input_tokens": cost.prompt,
        "input_tokens_details": {"cached_tokens": cost.cached, "cache_write_tokens": cost.written},
        "output_tokens": told,
        "output_tokens_details": {"reasoning_tokens": cost.thought},
        "total_tokens": cost.prompt + cost.answer,
    }


class ResponseItems:
    """The items of one answer, with their ids."""

    def __init__(self, call: Call, answer: Answer) -> None:
        self._call = call
        self._answer = answer
        self._mark = THOUGHT_MARK if answer.thinks else "n"

    def name(self, prefix: str, at: int) -> str:
        """Return the id of the item at that place."""
        return f"{prefix}{self._answer.seed}{self._mark}{at:02x}"

    def all(self) -> list[_Item]:
        """Return the items, whole."""
        answer, items = self._answer, list[_Item]()
        if answer.thinks:
            items.append(self._reasoning())
        if answer.text:
            items.append(self._message(len(items)))
        for number, one in enumerate(answer.calls):
            call_id = answer.name("call_", number)
            if "call_counter" in self._call.quirks:
                call_id = f"call_{number}"
            items.append(
                {
                    "id": self.name("fc_", len(items)),
                    "type": "function_call",
                    "status": "completed",
                    "arguments": one.text,
                    "call_id": call_id,
                    "name": one.name,
                }
            )
        return items

    def _reasoning(self) -> _Item:
        call, answer = self._call, self._answer
        parts = [{"type": "summary_text", "text": answer.thought}] if answer.thought else []
        item: _Item = {"id": self.name("rs_", 0), "type": "reasoning", "summary": parts}
        if ENCRYPTED in (call.body.get("include") or []):
            scope = f"{call.traits.issuer}/{call.scope}"
            item["encrypted_content"] = call.seals.seal("encrypted", scope, "", item["id"])
        return item

    def _message(self, at: int) -> _Item:
        refused = self._answer.draft.ending == "refusal"
        part: _Item = {"type": "output_text", "text": self._answer.text, "annotations": []}
        if refused:
            part = {"type": "refusal", "refusal": self._answer.text}
        else:
            part["logprobs"] = []
        message: _Item = {
            "id": self.name("msg_", at),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
        if self._call.traits.issuer == "openai" and self._call.traits.thinks_always:
            message["phase"] = "commentary" if self._answer.calls else "final_answer"
        return message


def response_object(
    call: Call, conversation: Conversation, answer: Answer, items: list[_Item] | None
) -> dict[str, Any]:
    """Return the response; without items it is one in progress."""
    body, ended = call.body, items is not None
    reasons = {"length": "max_output_tokens", "filter": "content_filter"}
    cut = reasons.get(answer.draft.ending) if ended else None
    status = "in_progress" if not ended else "incomplete" if cut else "completed"
    response = {
        "id": answer.name("resp_"),
        "object": "response",
        "created_at": answer.created_s,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": call.model,
        "output": items or [],
        "parallel_tool_calls": conversation.parallel,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": call.tier,
        "store": body.get("store") is not False,
        "temperature": body.get("temperature") or 1.0,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p") or 1.0,
        "truncation": body.get("truncation") or "disabled",
        "usage": usage_of(call, answer.cost) if ended else None,
        "metadata": body.get("metadata") or {},
    }
    if "content_filters" in call.quirks:
        response["content_filters"] = (
            None if not ended else [{"blocked": False, "source": "prompt"}]
        )
    return response


def responses_frames(call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
    """Return an answer as events."""
    return _Events(call, conversation, answer).all()


class _Events:
    """Writer of the events of one answer."""

    def __init__(self, call: Call, conversation: Conversation, answer: Answer) -> None:
        self._call = call
        self._conversation = conversation
        self._answer = answer
        self._items = ResponseItems(call, answer).all()
        self._frames: list[Frame] = []

    def all(self) -> list[Frame]:
        """Return all frames; only OpenRouter ends with [DONE]."""
        begun = response_object(self._call, self._conversation, self._answer, None)
        for name in ("response.created", "response.in_progress"):
            self._put(name, response=begun)
        for at, item in enumerate(self._items):
            self._item(at, item)
        whole = response_object(self._call, self._conversation, self._answer, self._items)
        self._put(f"response.{whole['status']}", response=whole)
        if "comments" in self._call.quirks:
            self._frames.append(Frame(DONE))
        return self._frames

    def _put(self, name: str, tokens: int = 0, /, **fields: Any) -> None:
        event = {"type": name, "sequence_number": len(self._frames), **fields}
        if "comments" in self._call.quirks:
            content = data_event(event)
        elif "data_first" in self._call.quirks:
            content = data_first_event(name, event)
        else:
            content = named_event(name, event)
        self._frames.append(Frame(content, tokens))

    def _item(self, at: int, item: _Item) -> None:
        begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
        for key in ("content", "summary"):
            if key in begun:
                begun[key] = []
        if "arguments" in begun:
            begun["arguments"] = ""
        self._put("response.output_item.added", output_index=at, item=begun)
        place = {"item_id": item["id"], "output_index": at}
        if item["type"] == "reasoning":
            self._summary(place, item)
        elif item["type"] == "message":
            self._message(place, item["content"][0])
        else:
            for piece in self._slices(item):
                self._put("response.function_call_arguments.delta", 1, delta=piece, **place)
            done = {"arguments": item["arguments"], "name": item["name"]}
            self._put("response.function_call_arguments.done", **place, **done)
        self._put("response.output_item.done", output_index=at, item=item)

    def _slices(self, item: _Item) -> tuple[str, ...]:
        calls = [one for one in self._items if one["type"] == "function_call"]
        return self._answer.calls[calls.index(item)].slices

    def _summary(self, place: _Item, item: _Item) -> None:
        """Tell a summary; a thought without one costs its tokens all the same."""
        if not item["summary"]:
            return
        [part] = item["summary"]
        where = {**place, "summary_index": 0}
        self._put("response.reasoning_summary_part.added", **where, part={**part, "text": ""})
        for piece in self._answer.draft.thought:
            self._put("response.reasoning_summary_text.delta", 1, delta=piece, **where)
        self._put("response.reasoning_summary_text.done", text=part["text"], **where)
        self._put("response.reasoning_summary_part.done", **where, part=part)

    def _message(self, place: _Item, part: _Item) -> None:
        refused = part["type"] == "refusal"
        name, key = ("refusal", "refusal") if refused else ("output_text", "text")
        more: dict[str, Any] = {} if refused else {"logprobs": []}
        where = {**place, "content_index": 0}
        self._put("response.content_part.added", **where, part={**part, key: ""})
        for piece in self._answer.draft.text:
            self._put(f"response.{name}.delta", 1, delta=piece, **where, **more)
        self._put(f"response.{name}.done", **where, **{key: part[key]}, **more)
        self._put("response.content_part.done", **where, part=part)
