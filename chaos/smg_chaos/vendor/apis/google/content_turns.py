"""Contents of a generateContent request: roles, parts, functions and their responses, and thought signatures."""

import re
from collections import Counter
from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Segment
from smg_chaos.vendor.answers.token_counts import IMAGE_TOKENS, text_tokens
from smg_chaos.vendor.apis.body_checks import objects
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.apis.call_signatures import SKIP_WORDS, check_call_signature
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.wire.sse import encode

_SNAKE: Final = re.compile(r"_([a-z])")
_FIELDS: Final = frozenset(
    [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
        "thought",
        "thoughtSignature",
        "videoMetadata",
        "toolCall",
        "toolResponse",
        "partMetadata",
        "mediaResolution",
    ]
)
_SAID: Final = _FIELDS - {
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "partMetadata",
    "mediaResolution",
}


def camel_keys(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its own keys in camelCase: both spellings are taken, even mixed."""
    return {_SNAKE.sub(lambda found: found[1].upper(), key): one for key, one in value.items()}


class ContentTurns:
    """Reader of the contents of one request."""

    def __init__(self, call: Call, conversation: Conversation) -> None:
        self._call = call
        self._conversation = conversation
        self._calls: list[str] = []
        self._steps: list[tuple[dict[str, Any], str]] = []
        """First calls of the steps since the user last said something, and where they stand."""

    def read(self, contents: list[dict[str, Any]]) -> None:
        """Take all of them."""
        before = ""
        for at, content in enumerate(contents):
            role = content.get("role") or "user"
            if role not in ("user", "model", "function"):
                said = "Please use a valid role: user, model."
                raise invalid(said, f"contents[{at}].role")
            if role == before and self._call.strict:
                said = "Please ensure that multiturn requests alternate between user and model."
                raise invalid(said, f"contents[{at}]")
            parts = self._parts(content, f"contents[{at}]")
            if role == "model":
                self._model(parts, f"contents[{at}]")
            else:
                self._user(parts, f"contents[{at}]")
            self._conversation.turns += role != before
            before = role
        for part, path in self._steps:
            name = part["functionCall"].get("name", "")
            check_call_signature(self._call, part.get("thoughtSignature"), name, path)

    def _parts(self, content: dict[str, Any], path: str) -> list[dict[str, Any]]:
        given = content.get("parts")
        parts = [
            camel_keys(part)
            for part in objects([given] if isinstance(given, dict) else given or [], path)
        ]
        if not parts:
            said = f"* GenerateContentRequest.{path}.parts: contents.parts must not be empty."
            raise invalid(said, f"{path}.parts")
        for at, part in enumerate(parts):
            self._check_part(part, f"{path}.parts[{at}]")
            content_bytes = encode(part)
            media = "inlineData" in part or "fileData" in part
            tokens = IMAGE_TOKENS if media else text_tokens(content_bytes)
            self._conversation.segments.append(Segment(content_bytes, tokens))
        return parts

    def _check_part(self, part: dict[str, Any], path: str) -> None:
        for key in part:
            if key not in _FIELDS:
                said = f"Invalid JSON payload received. Unknown name \"{key}\" at '{path}': Cannot find field."
                raise VendorError(Reason.UNKNOWN_FIELD, said, path=path)
        if _SAID.isdisjoint(part):
            raise invalid(
                f"* GenerateContentRequest.{path}.data: required oneof field 'data' must have one initialized field",
                path,
            )
        signature = part.get("thoughtSignature")
        if signature is not None and "functionCall" not in part and signature not in SKIP_WORDS:
            holds = self._call.seals.holds
            if not any(holds(signature, kind, "google", "") for kind in ("text", "call")):
                raise VendorError(Reason.BAD_STATE, "Thought signature is not valid.", path=path)

    def _model(self, parts: list[dict[str, Any]], path: str) -> None:
        if self._calls:
            self._refuse_counts(path)
        calls = [(at, part) for at, part in enumerate(parts) if "functionCall" in part]
        for at, part in calls:
            where, name = f"{path}.parts[{at}]", part["functionCall"].get("name")
            if not name:
                said = f"* GenerateContentRequest.{where}.function_call.name: Name cannot be empty."
                raise invalid(said, where)
            if at != calls[0][0] and part.get("thoughtSignature"):
                check_call_signature(self._call, part["thoughtSignature"], name, where)
        self._calls = [part["functionCall"]["name"] for _, part in calls]
        if calls:
            at, part = calls[0]
            self._steps.append((part, f"{path}.parts[{at}]"))

    def _user(self, parts: list[dict[str, Any]], path: str) -> None:
        conversation = self._conversation
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        text = "".join(str(part.get("text", "")) for part in parts)
        conversation.images += sum("inlineData" in part or "fileData" in part for part in parts)
        self._match(responses, path)
        for at, response in enumerate(responses):
            result = response.get("response", {})
            said = (
                result.get("output", result.get("result", result))
                if isinstance(result, dict)
                else result
            )
            conversation.result(
                said if isinstance(said, str) else encode(said).decode(), first=at == 0
            )
        if text and not responses:
            conversation.user(text)
            self._check_old_steps()

    def _check_old_steps(self) -> None:
        """Steps of turns that are over need no signature; one that is there has to be right."""
        for part, path in self._steps:
            if signature := part.get("thoughtSignature"):
                check_call_signature(self._call, signature, part["functionCall"]["name"], path)
        self._steps = []

    def _match(self, responses: list[dict[str, Any]], path: str) -> None:
        names = [response.get("name") for response in responses]
        for at, name in enumerate(names):
            if not name:
                where = f"{path}.parts[{at}].function_response.name"
                raise invalid(f"* GenerateContentRequest.{where}: Name cannot be empty.", where)
        if Counter(names) != Counter(self._calls):
            self._refuse_counts(path)
        self._calls = []

    def _refuse_counts(self, path: str) -> None:
        raise invalid(
            "Please ensure that the number of function response parts is equal to the number of function call parts "
            "of the function call turn.",
            path,
        )
