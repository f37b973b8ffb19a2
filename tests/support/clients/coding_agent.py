"""Requests of a coding agent, as Codex CLI 0.171 sends them, with fewer tools and shorter texts."""

from typing import Any, Final

_PLAIN: Final = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
_AGENT: Final = {"type": "object", "properties": {"target": {"type": "string"}}}
_COMMAND: Final[dict[str, Any]] = {
    "type": "function",
    "name": "exec_command",
    "description": "Runs a command.",
    "strict": False,
    "parameters": {**_PLAIN, "additionalProperties": False},
}
_AGENTS: Final[dict[str, Any]] = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "Other agents.",
    "tools": [
        {
            "type": "function",
            "name": name,
            "description": f"Does {name}.",
            "strict": False,
            "parameters": _AGENT,
        }
        for name in ("spawn_agent", "close_agent")
    ],
}
_PATCH: Final[dict[str, Any]] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files; not in JSON.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "begin" /.+/ "end"'},
}
_FIND: Final[dict[str, Any]] = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
_WEB: Final[dict[str, Any]] = {"type": "web_search", "external_web_access": True}


def _message(role: str, number: int, text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {
        "type": "message",
        "id": f"msg_00000000-0000-7000-8000-{number:012d}",
        "role": role,
        "content": content,
    }


_BEGUN: Final = [
    _message("developer", 1, "You are a coding agent."),
    _message("user", 2, "<environment_context><cwd>/work</cwd></environment_context>"),
    _message("user", 3, "say hello"),
]
_ALL: Final[dict[str, Any]] = {
    "stream": True,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "00000000-0000-7000-8000-000000000000",
    "client_metadata": {"x-codex-installation-id": "00000000-0000-7000-8000-000000000000"},
}
_CALLED: Final = [
    {
        "type": "message",
        "status": "completed",
        "id": "msg_0123",
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "Closing.\n", "annotations": [], "logprobs": []}
        ],
    },
    {
        "type": "function_call",
        "status": "completed",
        "id": "fc_0123",
        "name": "close_agent",
        "namespace": "multi_agent_v1",
        "arguments": '{"target": "worker"}',
        "call_id": "call_0123",
    },
    {
        "type": "function_call_output",
        "id": "fco_00000000-0000-7000-8000-000000000000",
        "call_id": "call_0123",
        "output": "there is no such agent",
    },
]

UNKNOWN_MODEL: Final[dict[str, Any]] = {
    **_ALL,
    "input": _BEGUN,
    "tools": [_COMMAND, _AGENTS, _WEB],
    "reasoning": {"summary": "auto"},
}
"""The first turn with a model of which the agent knows nothing."""
SECOND_TURN: Final[dict[str, Any]] = {**UNKNOWN_MODEL, "input": [*_BEGUN, *_CALLED]}
"""What follows a call of a namespace: the agent brings its whole history."""
KNOWN_MODEL: Final[dict[str, Any]] = {
    **_ALL,
    "input": _BEGUN,
    "tools": [_COMMAND, _PATCH, _FIND, {**_WEB, "search_content_types": ["text", "image"]}],
    "reasoning": {"effort": "medium"},
    "text": {"verbosity": "low"},
}
"""The first turn with a model that takes patches as free text, by a name that the agent knows."""
_EXEC: Final[dict[str, Any]] = {
    "type": "custom",
    "name": "exec",
    "description": "Runs code; not in JSON.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /[\\s\\S]+/"},
}
_DECLARED: Final[dict[str, Any]] = {
    "type": "additional_tools",
    "id": "at_00000000-0000-7000-8000-000000000000",
    "role": "developer",
    "tools": [
        {
            "type": "namespace",
            "name": "functions",
            "description": "",
            "tools": [_EXEC, {**_COMMAND, "name": "wait"}],
        },
        {**_AGENTS, "name": "collaboration"},
    ],
}
NEWEST_MODEL: Final[dict[str, Any]] = {
    **_ALL,
    "input": [_DECLARED, *_BEGUN],
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "context": "all_turns"},
    "text": {"verbosity": "low"},
}
"""The first turn with a model of the newest kind: its tools are an item of the input."""
NEWEST_SECOND_TURN: Final[dict[str, Any]] = {
    **NEWEST_MODEL,
    "input": [
        _DECLARED,
        *_BEGUN,
        {
            "type": "custom_tool_call",
            "id": "ctc_0123",
            "status": "completed",
            "call_id": "call_0123",
            "name": "exec",
            "namespace": "functions",
            "input": "text(1+1)",
        },
        {
            "type": "custom_tool_call_output",
            "id": "ctco_00000000-0000-7000-8000-000000000000",
            "call_id": "call_0123",
            "output": [{"type": "input_text", "text": "2"}],
        },
    ],
}
