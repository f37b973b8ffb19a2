"""Options of readers and presenters, as plain values; filled from settings."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

UnknownParameters: TypeAlias = Literal["forward", "reject"]
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "both"]


class Truth(Protocol):
    """A condition that is looked at anew whenever it matters; a bool is one."""

    def __bool__(self) -> bool:
        """Whether it holds now."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """Limits and switches of readers and presenters; every limit is inclusive.

    `unknown_parameters` decides on unknown keys: `forward` ignores them for gRPC engines and names
    them in the answer, `reject` makes them a 400. `template_from_request` allows the client's own
    `chat_template`. `matched_stop` adds the matched stop string or id to the answer. `drop_billing_block`
    leaves the line about billing out of system prompts of the Messages API. `tool_servers`: tools that this node runs
    can be had; without it they are left out as those that only vendors have.
    """

    messages_max: int = 8_192
    parts_max: int = 8_192
    images_max: int = 64
    audios_max: int = 16
    videos_max: int = 4
    tools_max: int = 512
    schema_max_bytes: int = 2_097_152
    stop_max: int = 16
    stop_max_bytes: int = 256
    n_max: int = 16
    choices_max: int = 128
    logit_bias_max: int = 1_024
    metadata_max: int = 16
    grammar_max_bytes: int = 65_536
    unknown_parameters: UnknownParameters = "forward"
    reasoning_field: ReasoningField = "reasoning_content"
    template_from_request: bool = False
    matched_stop: bool = False
    drop_billing_block: bool = True
    tool_servers: Truth = False
