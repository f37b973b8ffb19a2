"""Converse request: its fields and turns, and what Bedrock refuses of them."""

from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Segment, Tool
from smg_chaos.vendor.answers.token_counts import IMAGE_TOKENS, text_tokens
from smg_chaos.vendor.apis.body_checks import between, objects, texts, tool_name, typed
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.hostings.operations import Operation
from smg_chaos.vendor.wire.sse import encode

_MINUTES_5_S: Final = 300
_HOUR_S: Final = 3_600
_KINDS: Final = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
]
_ALTERNATE: Final = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between "
    "user and assistant roles and try again."
)
_Block = dict[str, Any]


def read_converse(call: Call) -> Conversation:
    """Return what a request says."""
    body = call.body
    conversation = Conversation(
        model=call.model, streamed=call.operation is Operation.CONVERSE_STREAM
    )
    _read_inference(call, conversation)
    _read_thinking(call, conversation)
    _read_tools(body, conversation)
    _read_output(body, conversation)
    system = body.get("system")
    for block in objects(system, "system") if system is not None else []:
        conversation.system += str(block.get("text", ""))
        _add(block, conversation)
    messages = objects(body.get("messages") or [], "messages")
    if not messages:
        raise invalid("The messages field is empty. Add a message and try again.", "messages")
    _Turns(call, conversation).read(messages)
    return conversation


def _read_inference(call: Call, conversation: Conversation) -> None:
    config = typed(call.body, "inferenceConfig", dict) or {}
    most = typed(config, "maxTokens", int)
    between(typed(config, "temperature", float), 0, 1, "inferenceConfig.temperature")
    between(typed(config, "topP", float), 0, 1, "inferenceConfig.topP")
    if most is not None and not 1 <= most <= call.traits.output_max:
        raise invalid(
            f"The maximum tokens you requested exceeds the model limit of {call.traits.output_max}. "
            "Try again with a maximum tokens value that is lower.",
            "inferenceConfig.maxTokens",
        )
    if call.traits.fixed_sampling and {"temperature", "topP"} & config.keys():
        said = (
            "The model returned the following errors: temperature is not supported by this model."
        )
        raise VendorError(Reason.UNSUPPORTED_PARAMETER, said, path="inferenceConfig")
    conversation.answer_max = most
    conversation.stops = texts(config.get("stopSequences"))


def _read_thinking(call: Call, conversation: Conversation) -> None:
    extra = typed(call.body, "additionalModelRequestFields", dict) or {}
    thinking = extra.get("thinking") or extra.get("reasoning_config") or {}
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    wanted = kind in ("enabled", "adaptive")
    if wanted and not call.traits.thinks:
        raise invalid(
            "The model returned the following errors: thinking is not supported.", "thinking"
        )
    conversation.thinks = wanted or call.traits.thinks_always
    hidden = "omitted" if call.traits.hides_thoughts else "summarized"
    conversation.shows_thoughts = not wanted or thinking.get("display", hidden) != "omitted"
    choice = (typed(call.body, "toolConfig", dict) or {}).get("toolChoice") or {}
    if wanted and ("any" in choice or "tool" in choice):
        said = "Thinking may not be enabled when tool_choice forces tool use."
        raise invalid(f"The model returned the following errors: {said}", "toolConfig.toolChoice")


def _read_tools(body: dict[str, Any], conversation: Conversation) -> None:
    config = typed(body, "toolConfig", dict)
    if config is None:
        return
    tools = objects(config.get("tools") or [], "toolConfig.tools")
    if not tools:
        raise invalid("toolConfig.tools: must not be empty", "toolConfig.tools")
    for at, tool in enumerate(tools):
        _add(tool, conversation)
        spec = tool.get("toolSpec")
        if isinstance(spec, dict):
            path = f"toolConfig.tools.{at}.member.toolSpec"
            schema = (spec.get("inputSchema") or {}).get("json")
            if not isinstance(schema, dict) or str(schema.get("type", "")).lower() != "object":
                said = f"The value at {path}.inputSchema.json.type must be one of the following: object."
                raise invalid(said, path)
            conversation.tools.append(Tool(tool_name(spec.get("name"), f"{path}.name"), schema))
    choice = config.get("toolChoice") or {}
    if "any" in choice:
        conversation.choice = "any"
    elif "tool" in choice:
        conversation.choice, conversation.named = "named", str(choice["tool"].get("name"))
        if conversation.named not in [tool.name for tool in conversation.tools]:
            said = f"The tool {conversation.named} of toolChoice is not in toolConfig.tools."
            raise invalid(said, "toolConfig.toolChoice")


def _read_output(body: dict[str, Any], conversation: Conversation) -> None:
    form = (typed(body, "outputConfig", dict) or {}).get("textFormat") or {}
    if form.get("type") == "json_schema":
        text = ((form.get("structure") or {}).get("jsonSchema") or {}).get("schema")
        import msgspec

        try:
            schema = msgspec.json.decode(text) if isinstance(text, str) else text
        except msgspec.DecodeError:
            schema = None
        if not isinstance(schema, dict):
            path = "outputConfig.textFormat.structure.jsonSchema.schema"
            raise invalid(f"The value at {path} is not a JSON schema.", path)
        conversation.schema = schema


def _add(block: _Block, conversation: Conversation) -> None:
    """Take a block into the prompt; a cache point marks the one before it."""
    point = block.get("cachePoint")
    if point is None:
        content = encode(block)
        media = "image" in block or "document" in block or "video" in block
        tokens = IMAGE_TOKENS if media else text_tokens(content)
        conversation.segments.append(Segment(content, tokens))
    elif conversation.segments:
        last = conversation.segments[-1]
        ttl_s = _HOUR_S if point.get("ttl") == "1h" else _MINUTES_5_S
        conversation.segments[-1] = Segment(last.content, last.tokens, ttl_s)


class _Turns:
    """Reader of the messages of one request."""

    def __init__(self, call: Call, conversation: Conversation) -> None:
        self._call = call
        self._conversation = conversation
        self._calls: list[str] = []

    def read(self, messages: list[dict[str, Any]]) -> None:
        """Take all of them."""
        before = ""
        for at, message in enumerate(messages):
            role = message.get("role")
            if role not in ("user", "assistant"):
                said = f"Value '{role}' at 'messages.{at + 1}.member.role' failed to satisfy constraint"
                raise invalid(said, f"messages.{at}.role")
            if at == 0 and role != "user":
                said = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
                raise invalid(said, "messages.0")
            if role == before:
                raise invalid(_ALTERNATE, f"messages.{at}")
            blocks = objects(message.get("content") or [], f"messages.{at}.content")
            if not blocks:
                said = f"The content field in the Message object at messages.{at} is empty. Add a ContentBlock object to the content field and try again."
                raise invalid(said, f"messages.{at}.content")
            for number, block in enumerate(blocks):
                self._check(block, f"messages.{at}.content.{number}")
                _add(block, self._conversation)
            self._user(blocks, at) if role == "user" else self._assistant(blocks, at)
            self._conversation.turns += 1
            before = role
        if self._calls:
            self._refuse_open(len(messages) - 1)

    def _check(self, block: _Block, path: str) -> None:
        kinds = [kind for kind in _KINDS if kind in block]
        if len(kinds) != 1:
            said = f"The ContentBlock object at {path} must set one of the following keys: {', '.join(_KINDS)}."
            raise invalid(said, path)
        if kinds == ["text"] and not str(block["text"]).strip():
            raise invalid(
                f"The text field in the ContentBlock object at {path} is blank. Add text to the text field, and try "
                "again.",
                path,
            )
        if kinds == ["reasoningContent"]:
            self._check_thought(block["reasoningContent"], path)
        used = kinds[0] in ("toolUse", "toolResult")
        if used and self._call.body.get("toolConfig") is None:
            said = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
            raise invalid(said, "toolConfig")

    def _check_thought(self, thought: dict[str, Any], path: str) -> None:
        holds, issuer = self._call.seals.holds, self._call.traits.issuer
        if "redactedContent" in thought:
            good = holds(str(thought["redactedContent"]), "redacted", issuer, "")
        else:
            text = thought.get("reasoningText") or {}
            if issuer != "anthropic" and "signature" not in text:
                return
            good = holds(
                str(text.get("signature", "")), "thinking", issuer, str(text.get("text", ""))
            )
        if not good:
            said = f"The model returned the following errors: {path}: Invalid `signature` in `thinking` block"
            raise VendorError(Reason.BAD_STATE, said, path=path)

    def _user(self, blocks: list[_Block], at: int) -> None:
        conversation = self._conversation
        text = "".join(block.get("text", "") for block in blocks)
        conversation.images += sum("image" in block for block in blocks)
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        names = [result.get("toolUseId") for result in results]
        if len(names) > len(self._calls) or any(name not in self._calls for name in names):
            said = (
                f"The number of toolResult blocks at messages.{at}.content exceeds the number of toolUse blocks of "
                "previous turn."
            )
            raise invalid(said, f"messages.{at}.content")
        self._calls = [name for name in self._calls if name not in names]
        if self._calls:
            self._refuse_open(at)
        for number, result in enumerate(results):
            conversation.result(_result_text(result), first=number == 0)
        if text and not results:
            conversation.user(text)

    def _refuse_open(self, at: int) -> None:
        raise invalid(
            f"Expected toolResult blocks at messages.{at}.content for the following Ids: {', '.join(self._calls)}",
            f"messages.{at}.content",
        )

    def _assistant(self, blocks: list[_Block], at: int) -> None:
        self._calls = [
            str(block["toolUse"].get("toolUseId")) for block in blocks if "toolUse" in block
        ]
        extra = self._call.body.get("additionalModelRequestFields") or {}
        kept = (extra.get("thinking") or {}).get("type") == "enabled" or self._call.strict
        claude = self._call.traits.issuer == "anthropic"
        if not (self._calls and kept and claude and self._conversation.thinks):
            return
        if "reasoningContent" not in blocks[0]:
            raise VendorError(
                Reason.BAD_STATE,
                f"The model returned the following errors: messages.{at}.content.0.type: Expected `thinking` or "
                "`redacted_thinking`, but found `tool_use`.",
                path=f"messages.{at}.content.0",
            )


def _result_text(result: dict[str, Any]) -> str:
    said = ""
    for part in objects(result.get("content") or [], "toolResult.content"):
        said += encode(part["json"]).decode() if "json" in part else str(part.get("text", ""))
    return said
