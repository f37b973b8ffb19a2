"""View of a Messages body: the options that only its presenter needs."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ThoughtDisplay: TypeAlias = Literal["shown", "omitted"]


@dataclass(frozen=True, slots=True)
class MessagesView:
    """Presentation options of an answer.

    `model` is the name as the client spelled it. With `display` omitted a thought's text is not sent, but
    carried in its signature. `eager_tools` are the tools whose arguments are streamed as they are
    printed, `eager_all` makes all of them such. `applied_edits` tells of edits of the context that the
    reader made, as the answer shows them; None where none were asked for. `silent` asks for an answer
    without any token (`max_tokens` 0).
    """

    model: str
    display: ThoughtDisplay = "shown"
    eager_tools: frozenset[str] = frozenset()
    eager_all: bool = False
    service_tier: str = "standard"
    applied_edits: tuple[dict[str, object], ...] | None = None
    diagnosed: bool = False
    """Whether `diagnostics` were asked for."""
    silent: bool = False
    transformations: tuple[dict[str, object], ...] = field(default=())
    """Blocks of the history that were left out, where the client asked to be told."""
    listed: frozenset[str] = frozenset()
    """Servers whose tools the answer lists."""
