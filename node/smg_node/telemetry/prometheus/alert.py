"""What an alert is: when it fires, what that means, and what to do about it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "warning"]
"""Critical: clients are hurt or will be soon, wake somebody. Warning: look at it in the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Series by which an alert is tried: names with labels, and what is seen once a minute.

    Values are in the notation of `promtool test rules`: `0+1x30` is 0, 1, 2 … 30.
    """

    fires: dict[str, str]
    quiet: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. `expression` is PromQL, `wait_s` how long it must hold before anybody is told."""

    name: str
    severity: Severity
    expression: str
    wait_s: int
    summary: str
    meaning: str
    action: str
    example: Example
