"""Messages request: its fields, and what Anthropic refuses of them."""

from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Tool
from smg_chaos.vendor.apis.anthropic.message_turns import MessageTurns, without_mark
from smg_chaos.vendor.apis.body_checks import between, first_unknown, objects, tool_name, typed
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.hostings.operations import Operation
from smg_chaos.vendor.wire.sse import encode

_KNOWN: Final = frozenset(
    [
        "cache_control",
        "container",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "user_profile_id",
        "workspace_id",
    ]
)
_BETA: Final = frozenset(
    [
        "billing_policy",
        "compaction",
        "context_management",
        "fallback_credit_token",
        "fallbacks",
        "mcp_servers",
        "thread",
    ]
)
_RAW: Final = (Operation.RAW_PREDICT, Operation.STREAM_RAW_PREDICT, Operation.COUNT_RAW)
_INVOKED: Final = (Operation.INVOKE, Operation.INVOKE_STREAM)
_COUNTS: Final = (Operation.COUNT_TOKENS, Operation.COUNT_RAW, Operation.COUNT_CONVERSE)
_BUDGET_LEAST: Final = 1_024
_MARKS_MAX: Final = 4
_SAMPLING: Final = ("temperature", "top_p", "top_k")
_TYPES_OF_TOOLS: Final = (None, "custom")


def read_messages(call: Call) -> Conversation:
    """Return what a Messages request says."""
    body, counts = call.body, call.operation in _COUNTS
    _check_fields(call)
    if not counts:
        _check_max_tokens(call)
    _check_sampling(call)
    conversation = Conversation(model=call.model, streamed=_streamed(call))
    conversation.answer_max = typed(body, "max_tokens", int)
    conversation.stops = _stops(body)
    _read_thinking(call, conversation)
    _read_tools(body, conversation)
    _read_output(body, conversation)
    _read_system(body, conversation)
    MessageTurns(call, conversation).read(objects(body.get("messages"), "messages"))
    _mark(body, conversation)
    return conversation


def _streamed(call: Call) -> bool:
    if call.operation is Operation.INVOKE_STREAM:
        return True
    return (typed(call.body, "stream", bool) or False) and call.operation is not Operation.INVOKE


def _allowed(call: Call) -> frozenset[str]:
    """Return the fields that this dress of the body may have."""
    known = _KNOWN
    if call.operation in _RAW or call.operation in _INVOKED:
        known = known - {"model"} | {"anthropic_version", "anthropic_beta"}
    if call.operation is Operation.COUNT_RAW:
        known = known | {"model"}
    if call.operation in _INVOKED:
        known = known - {"stream"}
    betas = call.headers.get("anthropic-beta") or call.body.get("anthropic_beta")
    return known | _BETA if betas else known


def _check_fields(call: Call) -> None:
    body = call.body
    unknown = first_unknown(body, _allowed(call))
    if unknown is not None:
        said = f"{unknown}: Extra inputs are not permitted"
        raise VendorError(Reason.UNKNOWN_FIELD, said, path=unknown)
    dressed = call.operation in _RAW or call.operation in _INVOKED
    if dressed and not isinstance(body.get("anthropic_version"), str):
        raise invalid("anthropic_version: Field required", "anthropic_version")
    betas = body.get("anthropic_beta")
    if betas is not None and not isinstance(betas, list):
        raise invalid("anthropic_beta: Input should be a valid list", "anthropic_beta")
    if "messages" not in body:
        raise invalid("messages: Field required", "messages")
    if body["messages"] == []:
        raise invalid("messages: at least one message is required", "messages")


def _check_max_tokens(call: Call) -> None:
    most = typed(call.body, "max_tokens", int)
    if most is None:
        raise invalid("max_tokens: Field required", "max_tokens")
    if most < 1:
        raise invalid("max_tokens: Input should be greater than or equal to 1", "max_tokens")
    if most > call.traits.output_max:
        raise invalid(
            f"max_tokens: {most} > {call.traits.output_max}, which is the maximum allowed number of output tokens "
            f"for {call.model}",
            "max_tokens",
        )


def _check_sampling(call: Call) -> None:
    between(typed(call.body, "temperature", float), 0, 1, "temperature")
    between(typed(call.body, "top_p", float), 0, 1, "top_p")
    if call.traits.fixed_sampling:
        for name in _SAMPLING:
            if call.body.get(name) is not None:
                said = f"{name}: this parameter is not supported by this model"
                raise VendorError(Reason.UNSUPPORTED_PARAMETER, said, path=name)


def _stops(body: dict[str, Any]) -> list[str]:
    stops = body.get("stop_sequences") or []
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise invalid("stop_sequences: Input should be a valid list of strings", "stop_sequences")
    if not all(stop.strip() for stop in stops):
        said = "stop_sequences: each stop sequence must contain non-whitespace"
        raise invalid(said, "stop_sequences")
    return stops


def _read_thinking(call: Call, conversation: Conversation) -> None:
    thinking = typed(call.body, "thinking", dict)
    if thinking is None or thinking.get("type") == "disabled":
        return
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "between_tools"):
        raise invalid(
            "thinking.type: Input should be 'enabled', 'adaptive' or 'disabled'", "thinking"
        )
    if not call.traits.thinks:
        raise invalid("thinking: this model does not support thinking", "thinking")
    if kind == "enabled":
        budget = typed(thinking, "budget_tokens", int, "thinking.enabled.")
        if budget is None or budget < _BUDGET_LEAST:
            said = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
            raise invalid(said, "thinking.enabled.budget_tokens")
        if (conversation.answer_max or budget + 1) <= budget:
            raise invalid(
                "`max_tokens` must be greater than `thinking.budget_tokens`.", "max_tokens"
            )
        if call.body.get("temperature") not in (None, 1, 1.0):
            said = "`temperature` may only be set to 1 when thinking is enabled."
            raise invalid(said, "temperature")
    choice = (call.body.get("tool_choice") or {}).get("type")
    if choice in ("any", "tool"):
        said = "Thinking may not be enabled when tool_choice forces tool use."
        raise invalid(said, "tool_choice")
    conversation.thinks = True
    hidden = "omitted" if call.traits.hides_thoughts else "summarized"
    conversation.shows_thoughts = thinking.get("display", hidden) != "omitted"


def _read_tools(body: dict[str, Any], conversation: Conversation) -> None:
    tools = body.get("tools")
    for at, tool in enumerate(objects(tools, "tools") if tools is not None else []):
        plain, ttl_s = without_mark(tool)
        conversation.add(encode(plain), ttl_s)
        if tool.get("type") not in _TYPES_OF_TOOLS:
            continue
        name = tool_name(tool.get("name"), f"tools.{at}.custom.name")
        if name in [one.name for one in conversation.tools]:
            raise invalid("tools: Tool names must be unique.", "tools")
        if not isinstance(tool.get("input_schema"), dict):
            raise invalid(f"tools.{at}.custom.input_schema: Field required", "tools")
        conversation.tools.append(Tool(name, tool["input_schema"]))
    choice = typed(body, "tool_choice", dict)
    if choice is None:
        return
    kind = choice.get("type")
    conversation.parallel = not choice.get("disable_parallel_tool_use")
    if kind not in ("auto", "any", "tool", "none"):
        raise invalid(
            "tool_choice: Input tag found does not match any of the expected tags", "tool_choice"
        )
    if not conversation.tools and kind != "none":
        raise invalid("tool_choice may only be specified while providing tools.", "tool_choice")
    if kind == "tool":
        if choice.get("name") not in [tool.name for tool in conversation.tools]:
            said = f"Tool '{choice.get('name')}' not found in provided tools"
            raise invalid(said, "tool_choice.name")
        conversation.choice, conversation.named = "named", choice["name"]
    else:
        conversation.choice = kind


def _read_output(body: dict[str, Any], conversation: Conversation) -> None:
    form = (typed(body, "output_config", dict) or {}).get("format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        if not isinstance(form.get("schema"), dict):
            raise invalid(
                "output_config.format.schema: Field required", "output_config.format.schema"
            )
        conversation.schema = form["schema"]


def _read_system(body: dict[str, Any], conversation: Conversation) -> None:
    system = body.get("system")
    if isinstance(system, str):
        conversation.system = system
        conversation.add(system.encode())
        return
    for at, block in enumerate(objects(system, "system") if system is not None else []):
        if not isinstance(block.get("text"), str) or not block["text"]:
            raise invalid("system: text content blocks must be non-empty", f"system.{at}.text")
        plain, ttl_s = without_mark(block)
        conversation.system += block["text"]
        conversation.add(encode(plain), ttl_s)


def _mark(body: dict[str, Any], conversation: Conversation) -> None:
    """Count the marks; one at the top stands on the last block."""
    _, ttl_s = without_mark(body)
    if ttl_s is not None and conversation.segments:
        last = conversation.segments[-1]
        conversation.segments[-1] = type(last)(last.content, last.tokens, ttl_s)
    marks = sum(one.ttl_s is not None for one in conversation.segments)
    if marks > _MARKS_MAX:
        said = f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        raise invalid(said, "cache_control")
