"""Turns of a Messages request: roles, blocks, calls and their results, and signed thoughts."""

from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Segment
from smg_chaos.vendor.answers.token_counts import IMAGE_TOKENS, text_tokens
from smg_chaos.vendor.apis.body_checks import objects
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.wire.sse import encode

_MINUTES_5_S: Final = 300
_HOUR_S: Final = 3_600
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_Block = dict[str, Any]


def without_mark(value: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
    """Return an object without its mark for the cache, and how long the mark asks for."""
    mark = value.get("cache_control")
    if mark is None:
        return value, None
    plain = {key: one for key, one in value.items() if key != "cache_control"}
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
        raise invalid("cache_control: Input should be a valid ephemeral mark", "cache_control")
    return plain, _HOUR_S if mark.get("ttl") == "1h" else _MINUTES_5_S


class MessageTurns:
    """Reader of the messages of one request."""

    def __init__(self, call: Call, conversation: Conversation) -> None:
        self._call = call
        self._conversation = conversation
        self._calls: list[str] = []
        self._calls_at = ""

    def read(self, messages: list[dict[str, Any]]) -> None:
        """Take all of them."""
        before = ""
        for at, message in enumerate(messages):
            role = message.get("role")
            if role not in ("user", "assistant"):
                raise invalid(
                    f"messages.{at}.role: Input should be 'user' or 'assistant'", "messages"
                )
            if at == 0 and role != "user":
                raise invalid('messages: first message must use the "user" role', "messages")
            if role == before and self._call.strict:
                said = 'messages: roles must alternate between "user" and "assistant"'
                raise invalid(f'{said}, but found multiple "{role}" roles in a row', "messages")
            blocks = self._blocks(message, f"messages.{at}", last=at == len(messages) - 1)
            if role == "user":
                self._user(blocks, f"messages.{at}")
            else:
                self._assistant(blocks, f"messages.{at}")
            self._conversation.turns += role != before
            before = role
        if self._calls:
            self._refuse_open()
        self._check_loop(messages)
        if before == "assistant" and self._call.traits.fixed_sampling:
            raise invalid("This model does not support assistant message prefill.", "messages")

    def _blocks(self, message: dict[str, Any], path: str, *, last: bool) -> list[_Block]:
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = objects(content, f"{path}.content")
        if not blocks and not (last and message["role"] == "assistant"):
            raise invalid(
                f"{path}: all messages must have non-empty content except for the optional final assistant message",
                path,
            )
        for at, block in enumerate(blocks):
            self._check_block(block, f"{path}.content.{at}")
            self._add(block)
        if last and message["role"] == "assistant" and blocks:
            text = blocks[-1].get("text", "")
            if text != text.rstrip():
                said = "messages: final assistant content cannot end with trailing whitespace"
                raise invalid(said, path)
        return blocks

    def _add(self, block: _Block) -> None:
        plain, ttl_s = without_mark(block)
        content = encode(plain)
        tokens = IMAGE_TOKENS if block["type"] == "image" else text_tokens(content)
        self._conversation.segments.append(Segment(content, tokens, ttl_s))

    def _check_block(self, block: _Block, path: str) -> None:
        kind = block.get("type")
        if not isinstance(kind, str):
            raise invalid(f"{path}.type: Field required", path)
        if kind == "text":
            text = block.get("text")
            if not isinstance(text, str):
                raise invalid(f"{path}.text.text: Field required", path)
            if not text:
                raise invalid("messages: text content blocks must be non-empty", path)
            if not text.strip():
                said = "messages: text content blocks must contain non-whitespace text"
                raise invalid(said, path)
        elif kind == "thinking":
            self._check_seal("thinking", block.get("signature"), block.get("thinking"), path)
        elif kind == "redacted_thinking":
            self._check_seal("redacted", block.get("data"), "", path)
        elif kind == "tool_use":
            if not isinstance(block.get("input"), dict):
                raise invalid(f"{path}.tool_use.input: Input should be a valid dictionary", path)
            if not block.get("id") or not block.get("name"):
                raise invalid(f"{path}.tool_use.id: Field required", path)

    def _check_seal(self, kind: str, sealed: Any, content: Any, path: str) -> None:
        field = "signature" if kind == "thinking" else "data"
        if not isinstance(sealed, str) or not isinstance(content, str):
            raise invalid(f"{path}.{kind}.{field}: Field required", path)
        if not self._call.seals.holds(sealed, kind, "anthropic", content):
            block = "thinking" if kind == "thinking" else "redacted_thinking"
            said = f"{path}: Invalid `{field}` in `{block}` block"
            raise VendorError(Reason.BAD_STATE, said, path=path)

    def _user(self, blocks: list[_Block], path: str) -> None:
        conversation, text, first = self._conversation, "", True
        begun = False
        for at, block in enumerate(blocks):
            kind = block["type"]
            if kind != "tool_result":
                begun = True
                text += str(block.get("text", "")) if kind == "text" else ""
                conversation.images += kind == "image"
                continue
            self._take_result(block, f"{path}.content.{at}", begun=begun)
            conversation.result(self._result_text(block, path), first=first)
            first = False
        if self._calls:
            self._refuse_open()
        if text:
            results, rounds = conversation.results, conversation.rounds
            conversation.user(text)
            if not first:
                conversation.results, conversation.rounds = results, rounds

    def _take_result(self, block: _Block, path: str, *, begun: bool) -> None:
        name = block.get("tool_use_id")
        if name not in self._calls:
            raise invalid(
                f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message.",
                path,
            )
        if begun:
            self._refuse_open()
        self._calls.remove(name)

    def _result_text(self, block: _Block, path: str) -> str:
        content = block.get("content", "")
        if isinstance(content, str):
            return content
        parts = objects(content, f"{path}.content")
        self._conversation.images += sum(part.get("type") == "image" for part in parts)
        return "".join(str(part.get("text", "")) for part in parts)

    def _assistant(self, blocks: list[_Block], path: str) -> None:
        if self._calls:
            self._refuse_open()
        self._calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        self._calls_at = path

    def _refuse_open(self) -> None:
        raise invalid(
            f"{self._calls_at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(self._calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
            "next message.",
            self._calls_at,
        )

    def _check_loop(self, messages: list[dict[str, Any]]) -> None:
        """Refuse calls under an answer whose thought was left out, where thinking goes on.

        With a budget that is the vendor's rule; where thinking is adaptive only a strict stand-in minds.
        """
        thinking = self._call.body.get("thinking") or {}
        if not self._conversation.thinks or not self._conversation.results:
            return
        if thinking.get("type") != "enabled" and not self._call.strict:
            return
        at = max(at for at, one in enumerate(messages) if one["role"] == "assistant")
        content = messages[at]["content"]
        kind = content[0].get("type") if isinstance(content, list) and content else "text"
        if kind not in _THOUGHTS:
            raise VendorError(
                Reason.BAD_STATE,
                f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
                "When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
                path=f"messages.{at}.content.0",
            )
