"""View of a chat body: the options that only the Chat Completions presenter needs."""

from dataclasses import dataclass

from smg_node.dialects.openai.view import View
from smg_node.dialects.options import ReasoningField


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatView(View):
    """Presentation options of a chat's answer.

    Reasoning is left in the content unless `separate_reasoning`, left out unless `include_reasoning`,
    and sent in one piece unless `stream_reasoning`. `legacy_call`: the client declared `functions`, so
    a call is a `function_call`, and there is at most one. `custom_tools` are those whose calls have
    an input of any text. `tool_runs`: the answer tells of runs of tools on this node's side; `served`: there may be
    some.
    """

    reasoning_field: ReasoningField = "reasoning_content"
    separate_reasoning: bool = True
    include_reasoning: bool = True
    stream_reasoning: bool = True
    legacy_call: bool = False
    custom_tools: frozenset[str] = frozenset()
    tool_runs: bool = False
    served: bool = False
