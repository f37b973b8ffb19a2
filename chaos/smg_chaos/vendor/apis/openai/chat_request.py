"""Chat Completions request: reading it, and what OpenAI and its likes refuse of it."""

from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Tool
from smg_chaos.vendor.apis.body_checks import (
    between,
    first_unknown,
    objects,
    texts,
    tool_name,
    typed,
)
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.apis.call_signatures import check_call_signature
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.hostings.models import Traits
from smg_chaos.vendor.wire.sse import encode

_KNOWN: Final = frozenset(
    [
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
_ROLES: Final = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
_FIXED: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_NEUTRAL: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
_UNKNOWN_ALLOWED: Final = frozenset(("openai_like", "xai", "gemini"))
_CHOICES_MAX: Final = 8
_STOPS_MAX: Final = 4


def read_chat(call: Call) -> Conversation:
    """Return what a Chat request says."""
    body = call.body
    _check_fields(call)
    _check_sampling(body, call.traits)
    conversation = Conversation(model=call.model, streamed=typed(body, "stream", bool) or False)
    conversation.answer_max = typed(body, "max_completion_tokens", int) or typed(
        body, "max_tokens", int
    )
    conversation.stops = texts(body.get("stop"))
    if len(conversation.stops) > _STOPS_MAX:
        raise invalid("Invalid 'stop': array too long. Expected at most 4 items.", "stop")
    effort = body.get("reasoning_effort")
    conversation.thinks = call.traits.thinks and effort != "none"
    conversation.thinks = conversation.thinks and (call.traits.thinks_always or bool(effort))
    _read_tools(body, conversation)
    _read_format(body, conversation)
    _Messages(call, conversation).read(objects(body.get("messages"), "messages"))
    return conversation


def _check_fields(call: Call) -> None:
    body = call.body
    lenient = call.kind in _UNKNOWN_ALLOWED and "strict_fields" not in call.quirks
    unknown = None if lenient else first_unknown(body, _KNOWN)
    if unknown is not None:
        said = f"Unrecognized request argument supplied: {unknown}"
        raise VendorError(Reason.UNKNOWN_FIELD, said, path=unknown)
    if not body.get("messages"):
        raise invalid("Missing required parameter: 'messages'.", "messages")
    if typed(body, "stream_options", dict) is not None and not body.get("stream"):
        said = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise invalid(said, "stream_options")
    count = typed(body, "n", int)
    if count is not None and not 1 <= count <= _CHOICES_MAX:
        raise invalid(f"Invalid 'n': integer out of range, got {count}.", "n")


def _check_sampling(body: dict[str, Any], traits: Traits) -> None:
    between(typed(body, "temperature", float), 0, 2, "temperature")
    between(typed(body, "top_p", float), 0, 1, "top_p")
    for name in ("max_tokens", "max_completion_tokens"):
        between(typed(body, name, int), 1, traits.output_max, name)
    if not (traits.fixed_sampling and traits.issuer == "openai"):
        return
    if body.get("max_tokens") is not None:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        raise VendorError(Reason.UNSUPPORTED_PARAMETER, said, path="max_tokens")
    for name in _FIXED:
        value = body.get(name)
        if value is not None and value != _NEUTRAL[name]:
            raise VendorError(
                Reason.UNSUPPORTED_VALUE,
                f"Unsupported value: '{name}' does not support {value} with this model. "
                f"Only the default ({_NEUTRAL[name]}) value is supported.",
                path=name,
            )


def _read_tools(body: dict[str, Any], conversation: Conversation) -> None:
    tools = body.get("tools")
    for at, tool in enumerate(objects(tools, "tools") if tools is not None else []):
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, dict):
            raise invalid(f"Invalid value for 'tools[{at}]'.", f"tools[{at}]")
        name = tool_name(function.get("name"), f"tools[{at}].function.name")
        where = f"tools[{at}].function."
        schema = typed(function, "parameters", dict, where) or {}
        conversation.tools.append(Tool(name, schema))
        conversation.add(encode(tool))
    conversation.parallel = body.get("parallel_tool_calls") is not False
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not conversation.tools:
        raise invalid("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
    if isinstance(choice, dict):
        named = (choice.get("function") or {}).get("name")
        if named not in [tool.name for tool in conversation.tools]:
            raise invalid(f"Tool choice '{named}' not found in 'tools' parameter.", "tool_choice")
        conversation.choice, conversation.named = "named", named
    else:
        known = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
        if choice not in known:
            raise invalid(f"Invalid value: '{choice}'.", "tool_choice")
        conversation.choice = known[choice]


def _read_format(body: dict[str, Any], conversation: Conversation) -> None:
    form = body.get("response_format")
    if not isinstance(form, dict) or form.get("type") == "text":
        return
    conversation.wants_json = True
    if form.get("type") == "json_schema":
        schema = (form.get("json_schema") or {}).get("schema")
        if not isinstance(schema, dict):
            path = "response_format.json_schema.schema"
            raise invalid(f"Missing required parameter: '{path}'.", path)
        conversation.schema = schema
    elif form.get("type") != "json_object":
        raise invalid(f"Invalid value: '{form.get('type')}'.", "response_format.type")


class _Messages:
    """Reader of the messages: each of them, and that calls and results fit."""

    def __init__(self, call: Call, conversation: Conversation) -> None:
        self._call = call
        self._conversation = conversation
        self._open: list[str] = []
        self._after_tool = False

    def read(self, messages: list[dict[str, Any]]) -> None:
        """Take all of them."""
        for at, message in enumerate(messages):
            self._one(message, f"messages[{at}]")
        self._close()

    def _one(self, message: dict[str, Any], path: str) -> None:
        conversation, role = self._conversation, message.get("role")
        if role not in _ROLES:
            raise invalid(f"Invalid value: '{role}'.", f"{path}.role")
        if role == "tool":
            self._result(message, path)
            return
        self._close()
        self._after_tool = False
        text = self._text(message, path, optional=role == "assistant")
        conversation.add(encode(message))
        if role in ("system", "developer"):
            conversation.system += text
            return
        conversation.turns += 1
        if role == "user":
            conversation.user(text)
        elif calls := message.get("tool_calls"):
            self._calls(objects(calls, f"{path}.tool_calls"), f"{path}.tool_calls")

    def _text(self, message: dict[str, Any], path: str, *, optional: bool) -> str:
        content = message.get("content")
        if content is None:
            if optional and (message.get("tool_calls") or message.get("refusal")):
                return ""
            raise invalid(
                f"Invalid value for 'content': expected a string, got null. ({path}.content)",
                f"{path}.content",
            )
        if isinstance(content, str):
            return content
        said = ""
        for at, part in enumerate(objects(content, f"{path}.content")):
            kind = part.get("type")
            if kind == "text":
                said += str(part.get("text", ""))
            elif kind == "image_url":
                self._conversation.images += 1
            elif kind not in ("input_audio", "file", "refusal", "thinking"):
                raise invalid(f"Invalid value: '{kind}'.", f"{path}.content[{at}].type")
        return said

    def _calls(self, calls: list[dict[str, Any]], path: str) -> None:
        for at, one in enumerate(calls):
            function = one.get("function") or {}
            if not isinstance(function.get("arguments"), str):
                where = f"{path}[{at}].function.arguments"
                raise invalid(f"Invalid type for '{where}': expected a string.", where)
            if not one.get("id") and "call_ids_empty" not in self._call.quirks:
                raise invalid(f"Missing required parameter: '{path}[{at}].id'.", f"{path}[{at}].id")
            self._open.append(str(one.get("id", "")))
            if at == 0 and self._call.traits.signs_calls:
                self._check_signature(one, f"{path}[{at}]")

    def _check_signature(self, one: dict[str, Any], path: str) -> None:
        """Refuse a first call whose signature Google's door to Chat Completions does not find, or not know."""
        extra = (one.get("extra_content") or {}).get("google") or {}
        check_call_signature(
            self._call, extra.get("thought_signature"), one["function"].get("name", ""), path
        )

    def _result(self, message: dict[str, Any], path: str) -> None:
        name = str(message.get("tool_call_id", ""))
        if name not in self._open:
            said = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            raise invalid(f"Invalid parameter: {said}", f"{path}.role")
        self._open.remove(name)
        text = self._text(message, path, optional=False)
        self._conversation.result(text, first=not self._after_tool)
        self._after_tool = True
        self._conversation.turns += 1
        self._conversation.add(encode(message))

    def _close(self) -> None:
        if self._open:
            raise invalid(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                + ", ".join(self._open),
                "messages",
            )
