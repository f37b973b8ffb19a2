"""Tool owner: whose tool a call is, where it is not the client's own."""

from typing import Literal, TypeAlias

import msgspec

ToolShape: TypeAlias = Literal[
    "mcp",
    "web_search",
    "web_fetch",
    "file_search",
    "code_interpreter",
    "image_generation",
    "tool_search",
]
"""How an API shows the run of a tool: as that of any server, or as one of the built-in tools that vendors have."""


class ToolOwner(msgspec.Struct, frozen=True, gc=False):
    """Whose tool a call is: the request's label of its server, and the server's own name of the tool.

    `asks`: it is not run before a person allows it, and the answer ends after the round in which it is called.
    `approval` is the id of the approval that let it run, "" where none was needed. `hidden`: an operator wants
    neither its calls nor its server shown.
    """

    server: str
    tool: str
    shape: ToolShape = "mcp"
    asks: bool = False
    approval: str = ""
    hidden: bool = False
