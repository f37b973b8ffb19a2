"""Messages draft: the request to be, with what its history needs to know of other parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smg_node.core.generation.request import Effort, Tool
from smg_node.dialects.dialect import Caller
from smg_node.dialects.messages.request.context_edits import Edits
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.openai.request_draft import Draft
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import ThoughtSeals

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.dialects.messages.tool_runs.asked_tools import AskedTools


class MessagesDraft(Draft):
    """Draft of one request.

    `tools` are those that the model may call, by name, in the order in which they were declared; `removed`
    those of them that were taken away later. `effort` is that of the newest system message, with its path.
    `documents` is how many there were so far, `framed` the one that was read last, if it became a text;
    `forgotten_turns` had thoughts that are left out. `prefilled` is the path of the text that the answer goes on from.
    `dropped` tells of thoughts that nobody here can read, None where the client did not ask for that. `asked` is what is
    asked of tools on this node's side, None for nothing.
    """

    __slots__ = (
        "asked", "betas", "caller", "documents", "dropped", "edits", "effort", "forgotten_characters", "forgotten_turns",
        "framed", "model", "parts", "prefilled", "removed", "seals", "thinking_kind", "tools",
    )  # fmt: skip

    def __init__(self, options: ReaderOptions, seals: ThoughtSeals, caller: Caller) -> None:
        super().__init__(options)
        self.seals = seals
        self.caller = caller
        self.model = ""
        self.betas = caller.headers.get("anthropic-beta", "")
        self.edits: Edits | None = None
        self.tools: dict[str, Tool] = {}
        self.removed: dict[str, bool] = {}
        self.effort: tuple[Effort, str] | None = None
        self.parts = PartCounter(options)
        self.documents = 0
        self.framed: Mapping[str, Any] | None = None
        self.dropped: list[dict[str, object]] | None = None
        self.forgotten_turns = 0
        self.forgotten_characters = 0
        self.prefilled = ""
        self.thinking_kind = ""
        self.asked: AskedTools | None = None

    def asked_tools(self) -> "AskedTools":
        """Return what is asked of tools on this node's side so far; made with the first of it."""
        if self.asked is None:
            from smg_node.dialects.messages.tool_runs.asked_tools import AskedTools

            self.asked = AskedTools(self.betas, self.caller.headers)
        return self.asked
