"""Response request: a parsed body of `POST /v1/responses`, not yet joined with its history."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import structs

from smg_node.core.generation.request import Sampling, Thinking, Tool, ToolChoice
from smg_node.dialects.responses.items.flat_names import NamespacedName
from smg_node.dialects.responses.items.item_document import ItemDoc

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.core.generation.tool_serving import ToolServing

Truncation: TypeAlias = Literal["disabled", "auto"]
ReasoningContext: TypeAlias = Literal["current_turn", "all_turns"]
Api: TypeAlias = Literal["responses", "interactions"]
"""The APIs whose answers are stored; an answer is shown by the one that made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """A parsed body.

    `items` are its own input; an item_reference stays there until history resolves it, and its id
    is in `references`. `custom_tools` are names of `tools` whose calls are shown as
    custom_tool_call; `namespaced` are those of a namespace, by their names in `tools`.
    """

    model: str
    items: tuple[ItemDoc, ...]
    sampling: Sampling
    instructions: str | None = None
    previous_response_id: str = ""
    conversation_id: str = ""
    store: bool = True
    background: bool = False
    stream: bool = False
    truncation: Truncation = "disabled"
    include: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    safety_identifier: str = ""
    references: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = field(default_factory=ToolChoice)
    custom_tools: tuple[str, ...] = ()
    namespaced: Mapping[str, NamespacedName] = field(default_factory=dict)
    reasoning_context: ReasoningContext = "current_turn"
    thinking: Thinking = field(default_factory=Thinking)
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Variables for the chat template."""
    routing_key: str | None = None
    ignored: tuple[str, ...] = ()
    echo: Mapping[str, Any] = field(default_factory=dict)
    """What the answer repeats of the body, by the names of the public object."""
    api: Api = "responses"
    serving: "ToolServing | None" = None
    """What it asks of tools on this node's side, without what its history says of them; None for nothing."""

    @property
    def wants_encrypted(self) -> bool:
        """Whether reasoning is returned sealed: because it is requested, or the response is not
        stored.
        """
        return not self.store or "reasoning.encrypted_content" in self.include


def unstored(ask: ResponseRequest) -> ResponseRequest:
    """Return a request whose answer is not kept, whatever it asks for."""
    serving = ask.serving
    return replace(
        ask,
        store=False,
        serving=None if serving is None else structs.replace(serving, stored=False),
    )
