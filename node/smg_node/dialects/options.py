"""What a reader may be told by configuration."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

UnknownParameters: TypeAlias = Literal["forward", "reject"]
ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "both"]


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """Limits and habits of the readers and presenters; every limit is inclusive.

    `unknown_parameters` is what becomes of a key nobody knows: `forward` ignores it on the way to a
    gRPC engine and says so, `reject` makes it a 400. `template_from_request` allows the client's own
    `chat_template`. `matched_stop` adds what stopped a choice to the answer.
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
