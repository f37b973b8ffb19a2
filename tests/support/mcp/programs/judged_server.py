"""A server with the tools that the official conformance suite calls, of the Python SDK, by HTTP.

It says where it listens. Log messages, sampling by the older protocol, prompts and resources are not among them.
"""

import asyncio
import base64
import socket
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
STRICT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
ROUTED: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
SCHEMAS = {"json_schema_2020_12_tool": STRICT, "test_x_mcp_header": ROUTED}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(48)).decode()
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVE" + bytes(32)).decode()


def text(value: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": value}


def resource(uri: str, mime: str, value: str) -> dict[str, Any]:
    """Return an embedded resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": value}}


IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
MIXED = resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
EMBEDDED = resource(
    "test://embedded-resource", "text/plain", "This is an embedded resource content."
)
CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [EMBEDDED],
    "test_multiple_content_types": [text("Multiple content types test:"), IMAGE, MIXED],
    "test_logging_tool": [text("nothing was logged")],
    "test_streaming_elicitation": [text("nothing was asked")],
    "test_x_mcp_header": [text("routed")],
    "json_schema_2020_12_tool": [text("fits")],
}


def form(message: str, name: str, kind: str = "string") -> dict[str, Any]:
    """Return the question for one value."""
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    params = {"message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


SAMPLING = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": text("What is the capital of France?")}],
        "maxTokens": 100,
    },
}
ROOTS = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", "name")
CONFIRM = form("Please confirm", "ok", "boolean")
ASKED: dict[str, list[tuple[dict[str, Any], str | None]]] = {
    "test_input_required_result_elicitation": [({"user_name": NAME}, None)],
    "test_input_required_result_sampling": [({"capital_question": SAMPLING}, None)],
    "test_input_required_result_list_roots": [({"client_roots": ROOTS}, None)],
    "test_input_required_result_request_state": [({"confirm": CONFIRM}, "1")],
    "test_input_required_result_tampered_state": [({"confirm": CONFIRM}, "1")],
    "test_input_required_result_multiple_inputs": [
        ({"user_name": NAME, "greeting": SAMPLING, "client_roots": ROOTS}, "1")
    ],
    "test_input_required_result_multi_round": [
        ({"step1": form("Step 1: What is your name?", "name")}, "1"),
        ({"step2": form("Step 2: What is your favorite color?", "color")}, "2"),
    ],
}
"""Rounds of each tool that asks: what it asks, and the state that it gives with it."""
OTHERS = (
    "test_error_handling",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_input_required_result_capabilities",
)


def result(*content: dict[str, Any], error: bool = False) -> types.CallToolResult:
    """Return a whole result."""
    return types.CallToolResult.model_validate({"content": list(content), "isError": error})


def required(requests: dict[str, Any], state: str | None) -> types.InputRequiredResult:
    """Return the result that asks for more."""
    asked = {"resultType": "input_required", "inputRequests": requests}
    return types.InputRequiredResult.model_validate({**asked, "requestState": state})


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """List all tools."""
    names = sorted([*CONTENT, *ASKED, *OTHERS])
    rows = [
        {"name": name, "description": f"Judged: {name}.", "inputSchema": SCHEMAS.get(name, NOTHING)}
        for name in names
    ]
    return types.ListToolsResult.model_validate({"tools": rows})


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Run one."""
    name, said = params.name, dict(ctx.params or {})
    if name in CONTENT:
        return result(*CONTENT[name])
    if name in ASKED:
        return ask(name, said)
    can = (said.get("_meta") or {}).get("io.modelcontextprotocol/clientCapabilities") or {}
    if name == "test_error_handling":
        return result(text("This tool intentionally returns an error for testing"), error=True)
    if name == "test_missing_capability":
        if "sampling" in can:
            return result(text("it can"))
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=-32021, message="sampling is needed", data=needed)
    if name == "test_input_required_result_capabilities":
        questions = {"elicitation": {"name": NAME}, "sampling": {"question": SAMPLING}}
        asked = {
            key: one for kind in questions if kind in can for key, one in questions[kind].items()
        }
        return required(asked, None) if asked else result(text("nobody can be asked"))
    if name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await ctx.session.report_progress(done, 100)
            await asyncio.sleep(0.05)
        return result(text("done"))
    raise MCPError(code=-32602, message=f"Unknown tool: {name}")


def ask(name: str, said: dict[str, Any]) -> Any:
    """Return the next round of a tool that asks, or its result."""
    rounds = ASKED[name]
    state, answers = said.get("requestState"), said.get("inputResponses") or {}
    place = 0 if state is None else int(state) - 1
    requests, given = rounds[place]
    if not all(accepted(answers.get(key), one) for key, one in requests.items()):
        return required(requests, given)
    if place + 1 < len(rounds):
        return required(*rounds[place + 1])
    if name == "test_input_required_result_elicitation":
        return result(text(f"Hello, {answers['user_name']['content']['name']}!"))
    return result(text(f"state-ok: {', '.join(sorted(answers))}"))


def accepted(answer: Any, question: dict[str, Any]) -> bool:
    """Whether an answer is one to that question."""
    if not isinstance(answer, dict):
        return False
    if question["method"] != "elicitation/create":
        return "content" in answer or "roots" in answer
    content = answer.get("content")
    needed = question["params"]["requestedSchema"]["required"]
    return answer.get("action") == "accept" and all(key in (content or {}) for key in needed)


def main() -> None:
    """Serve until somebody ends it."""
    server = Server("judged", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="judged")
    )
    app = server.streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stderr.write(f"listening on 127.0.0.1:{listening.getsockname()[1]}\n")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
