"""Responses request: reading its items, and what OpenAI refuses of calls, reasoning and what encrypts it."""

from collections.abc import Callable
from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Tool
from smg_chaos.vendor.apis.body_checks import between, first_unknown, objects, tool_name, typed
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.apis.openai.response_store import ResponseStore
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.wire.sse import encode

_KNOWN: Final = frozenset(
    [
        "access_programs",
        "background",
        "background_options",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
)
ENCRYPTED: Final = "reasoning.encrypted_content"
THOUGHT_MARK: Final = "r"
"""Stands in the ids of items whose answer began with reasoning."""
_LEAST_OUTPUT: Final = 16
_HOSTED: Final = ("web_search", "file_search", "code_interpreter", "mcp", "image_generation")


def items_of(call: Call, store: ResponseStore) -> list[dict[str, Any]]:
    """Return the items that are answered: those of the response before it, and the request's."""
    given = call.body.get("input")
    if given is None:
        raise invalid("Missing required parameter: 'input'.", "input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    items = objects(given, "input")
    before = typed(call.body, "previous_response_id", str)
    if before is None:
        return items
    stored = store.get(before)
    if stored is None:
        said = f"Previous response with id '{before}' not found."
        raise VendorError(Reason.NOT_FOUND, said, path="previous_response_id")
    return [*stored.items, *items]


def read_responses(call: Call, store: ResponseStore) -> Conversation:
    """Return what a Responses request says."""
    body = call.body
    unknown = None if call.kind in ("xai", "openai_like") else first_unknown(body, _KNOWN)
    if unknown is not None:
        said = f"Unknown parameter: '{unknown}'."
        raise VendorError(Reason.UNKNOWN_FIELD, said, path=unknown)
    items = items_of(call, store)
    _check_numbers(call)
    conversation = Conversation(model=call.model, streamed=typed(body, "stream", bool) or False)
    conversation.answer_max = typed(body, "max_output_tokens", int)
    reasoning = typed(body, "reasoning", dict) or {}
    conversation.thinks = call.traits.thinks and reasoning.get("effort") != "none"
    conversation.thinks = conversation.thinks and (
        call.traits.thinks_always or bool(reasoning.get("effort"))
    )
    conversation.shows_thoughts = bool(reasoning.get("summary"))
    _read_tools(body, conversation)
    _read_format(body, conversation)
    if instructions := typed(body, "instructions", str):
        conversation.system = instructions
        conversation.add(instructions.encode())
    _Items(call, conversation, store).read(items)
    return conversation


def _check_numbers(call: Call) -> None:
    body, traits = call.body, call.traits
    typed(body, "include", list)
    most = typed(body, "max_output_tokens", int)
    if most is not None and most < _LEAST_OUTPUT and call.kind != "openai_like":
        raise invalid(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {most} instead.",
            "max_output_tokens",
        )
    between(typed(body, "temperature", float), 0, 2, "temperature")
    if not (traits.fixed_sampling and traits.issuer == "openai"):
        return
    for name in ("temperature", "top_p"):
        if body.get(name) not in (None, 1):
            said = f"Unsupported parameter: '{name}' is not supported with this model."
            raise VendorError(Reason.UNSUPPORTED_PARAMETER, said, path=name)


def _read_tools(body: dict[str, Any], conversation: Conversation) -> None:
    tools = body.get("tools")
    for at, tool in enumerate(objects(tools, "tools") if tools is not None else []):
        conversation.add(encode(tool))
        if tool.get("type") == "function":
            name = tool_name(tool.get("name"), f"tools[{at}].name")
            schema = typed(tool, "parameters", dict, f"tools[{at}].") or {}
            conversation.tools.append(Tool(name, schema))
        elif not str(tool.get("type", "")).startswith(_HOSTED):
            raise invalid(f"Invalid value: '{tool.get('type')}'.", f"tools[{at}].type")
    conversation.parallel = body.get("parallel_tool_calls") is not False
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        if choice.get("name") not in [tool.name for tool in conversation.tools]:
            said = f"Tool choice '{choice.get('name')}' not found in 'tools' parameter."
            raise invalid(said, "tool_choice")
        conversation.choice, conversation.named = "named", choice["name"]
    elif choice is not None:
        conversation.choice = "any" if choice == "required" else str(choice)


def _read_format(body: dict[str, Any], conversation: Conversation) -> None:
    form = (typed(body, "text", dict) or {}).get("format") or {}
    if form.get("type") == "json_schema":
        if not isinstance(form.get("schema"), dict):
            said = "Missing required parameter: 'text.format.schema'."
            raise invalid(said, "text.format.schema")
        conversation.schema = form["schema"]
    conversation.wants_json = form.get("type") in ("json_schema", "json_object")


class _Items:
    """Reader of the items: each of them, and that those which belong together are there."""

    def __init__(self, call: Call, conversation: Conversation, store: ResponseStore) -> None:
        self._call = call
        self._conversation = conversation
        self._store = store
        self._open: list[str] = []
        self._alone = ""
        self._seen: set[str] = set()
        self._after_result = False

    def read(self, items: list[dict[str, Any]]) -> None:
        """Take all of them."""
        readers: dict[str, Callable[[dict[str, Any], str], None]] = {
            "message": self._message,
            "reasoning": self._reasoning,
            "function_call": self._function_call,
            "function_call_output": self._output,
        }
        for at, item in enumerate(items):
            kind = str(item.get("type") or "message")
            self._conversation.add(encode(item))
            reader = readers.get(kind)
            if reader is not None:
                reader(item, f"input[{at}]")
            self._after_result = kind == "function_call_output"
        if self._alone:
            self._refuse_alone()
        if self._open:
            said = f"No tool output found for function call {self._open[0]}."
            raise invalid(said, "input")

    def _refuse_alone(self) -> None:
        raise invalid(
            f"Item '{self._alone}' of type 'reasoning' was provided without its required following item.",
            "input",
        )

    def _message(self, item: dict[str, Any], path: str) -> None:
        conversation, role = self._conversation, item.get("role")
        if role not in ("user", "assistant", "system", "developer"):
            raise invalid(f"Invalid value: '{role}'.", f"{path}.role")
        text = self._text(item.get("content"), path)
        if role == "user":
            if self._alone:
                self._refuse_alone()
            conversation.turns += 1
            conversation.user(text)
        elif role == "assistant":
            self._pair(item, "message")
            conversation.turns += 1
        else:
            conversation.system += text

    def _text(self, content: Any, path: str) -> str:
        if isinstance(content, str):
            return content
        said = ""
        for part in objects(content, f"{path}.content"):
            said += str(part.get("text", ""))
            self._conversation.images += part.get("type") == "input_image"
        return said

    def _reasoning(self, item: dict[str, Any], path: str) -> None:
        if self._alone:
            self._refuse_alone()
        name, sealed = str(item.get("id") or ""), item.get("encrypted_content")
        if sealed:
            scope = f"{self._call.traits.issuer}/{self._call.scope}"
            if not self._call.seals.holds(str(sealed), "encrypted", scope, ""):
                said = f"The encrypted content for item {name} could not be verified."
                raise VendorError(Reason.BAD_STATE, said, path=path)
        elif not self._store.has_item(name):
            raise VendorError(
                Reason.NOT_FOUND,
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                path=path,
            )
        self._seen.add(name)
        self._alone = name or "rs_"

    def _pair(self, item: dict[str, Any], kind: str) -> None:
        """Refuse an item whose reasoning is left out, as far as its id or its place tells."""
        follows, self._alone = bool(self._alone), ""
        name = str(item.get("id") or "")
        seed = name.partition("_")[2].partition(THOUGHT_MARK)
        if seed[1]:
            thought = f"rs_{seed[0]}{THOUGHT_MARK}00"
            if thought not in self._seen and not follows:
                raise invalid(
                    f"Item '{name}' of type '{kind}' was provided without its required 'reasoning' item: "
                    f"'{thought}'.",
                    "input",
                )
        elif self._minds_lost_thoughts(kind) and not follows and not self._open:
            said = f"Item '{name}' of type 'function_call' came without a 'reasoning' item."
            raise VendorError(Reason.BAD_STATE, said, path="input")

    def _minds_lost_thoughts(self, kind: str) -> bool:
        strict = self._call.strict and self._call.traits.thinks_always
        return strict and kind == "function_call"

    def _function_call(self, item: dict[str, Any], path: str) -> None:
        self._pair(item, "function_call")
        if not isinstance(item.get("arguments"), str):
            raise invalid(f"Missing required parameter: '{path}.arguments'.", f"{path}.arguments")
        if not item.get("call_id"):
            raise invalid(f"Missing required parameter: '{path}.call_id'.", f"{path}.call_id")
        self._open.append(item["call_id"])

    def _output(self, item: dict[str, Any], path: str) -> None:
        if self._alone:
            self._refuse_alone()
        name = item.get("call_id")
        if name not in self._open:
            said = f"No tool call found for function call output with call_id {name}."
            raise invalid(said, "input")
        self._open.remove(name)
        output = item.get("output")
        text = output if isinstance(output, str) else self._text(output, path)
        self._conversation.turns += not self._after_result
        self._conversation.result(text, first=not self._after_result)
