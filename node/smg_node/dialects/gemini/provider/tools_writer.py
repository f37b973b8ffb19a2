"""Writer of tools: function declarations, and which of them may or must be called. Pure."""

from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt, Tool, ToolChoice

_ANY: Final = "ANY"


def tools_of(prompt: ChatPrompt) -> dict[str, Any]:
    """Return `tools` and `toolConfig` of a prompt; nothing where it has no tools."""
    if not prompt.tools:
        return {}
    fields: dict[str, Any] = {
        "tools": [{"functionDeclarations": [_declared(tool) for tool in prompt.tools]}]
    }
    calling = _calling(prompt.choice, prompt.tools)
    if calling:
        fields["toolConfig"] = {"functionCallingConfig": calling}
    return fields


def _declared(tool: Tool) -> dict[str, Any]:
    told: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        told["description"] = tool.description
    if tool.parameters is not None:
        told["parametersJsonSchema"] = tool.parameters
    return told


def _calling(choice: ToolChoice, tools: tuple[Tool, ...]) -> dict[str, Any]:
    """Return the config of calling; nothing where the model may call or not, as it always may."""
    names = None if choice.allowed is None else list(choice.allowed)
    match choice.mode:
        case "none":
            return {"mode": "NONE"}
        case "named":
            return {"mode": _ANY, "allowedFunctionNames": [choice.name]}
        case "required":
            return {"mode": _ANY, **({"allowedFunctionNames": names} if names else {})}
        case "auto":
            # Names may only stand beside ANY and VALIDATED, which holds calls to their schemas too.
            if names:
                return {"mode": "VALIDATED", "allowedFunctionNames": names}
            return {"mode": "VALIDATED"} if all(tool.strict for tool in tools) else {}
