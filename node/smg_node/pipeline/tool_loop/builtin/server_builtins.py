"""Server built-ins: built-in tools that the tool of a server does the work of; see `ports.Builtins`. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.citations import citations_in
from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_serving import AskedBuiltin, BuiltinKind, RunResult, Source
from smg_node.dialects.served_tools.citation_forms import responses_annotation
from smg_node.mcp.builtin.builtin_result import read_builtin
from smg_node.mcp.builtin.builtin_tool import builtin_tool
from smg_node.mcp.builtin.server_arguments import arguments_for
from smg_node.mcp.failures import Failure
from smg_node.mcp.tools.tool_result import CallResult

KINDS: Final[frozenset[BuiltinKind]] = frozenset(
    {"web_search", "web_fetch", "file_search", "code_interpreter", "image_generation"}
)
"""What models are offered a function of their own for."""


class ServerBuiltins:
    """Built-in tools on any server."""

    def offered(self, asked: AskedBuiltin) -> Tool | None:
        """See `Builtins`."""
        if asked.kind not in KINDS:
            return None
        return builtin_tool(asked.kind, asked.settings, spelled=asked.spelled)

    def arguments(
        self,
        kind: BuiltinKind,
        settings: Mapping[str, Any],
        arguments: str,
        schema: Mapping[str, Any] | None,
    ) -> str | Failure:
        """See `Builtins`."""
        return arguments_for(kind, settings, arguments, schema=schema)

    def read(
        self,
        kind: BuiltinKind,
        settings: Mapping[str, Any],
        arguments: str,
        outcome: CallResult | Failure,
        *,
        first: int,
        bytes_max: int,
    ) -> RunResult:
        """See `Builtins`."""
        return read_builtin(kind, settings, arguments, outcome, first=first, bytes_max=bytes_max)

    def annotations(self, text: str, sources: Sequence[Source]) -> tuple[Mapping[str, Any], ...]:
        """See `Builtins`."""
        made = map(responses_annotation, citations_in(text, sources))
        return tuple(one for one in made if one is not None)
