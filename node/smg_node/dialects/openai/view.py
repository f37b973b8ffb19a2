"""View of a body: the options that only a presenter needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Presentation options of an answer.

    `service_tier`: repeat that the tier is `default`. `continuous_usage`: usage on every frame.
    `tokens_as_ids`: in log probabilities a token is spelled `token_id:123`.
    """

    include_usage: bool = False
    continuous_usage: bool = False
    token_ids: bool = False
    tokens_as_ids: bool = False
    matched_stop: bool = False
    service_tier: bool = False
    metadata: Mapping[str, str] | None = None
    bare: bool = field(init=False, repr=False, compare=False)
    """Whether a whole answer has nothing in it but what every one has."""
    plain: bool = field(init=False, repr=False, compare=False)
    """Whether that is so of a stream as well, but for usage at its end."""

    def __post_init__(self) -> None:
        bare = not (self.token_ids or self.matched_stop or self.service_tier)
        bare = bare and self.metadata is None
        object.__setattr__(self, "bare", bare)
        object.__setattr__(self, "plain", bare and not self.continuous_usage)
