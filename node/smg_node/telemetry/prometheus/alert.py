"""Alert declaration: expression, meaning, what to do about it, and the examples that test it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "warning"]
"""Critical: clients are hurt or will be soon, wake somebody. Warning: look at it in the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Series that test an alert: names with labels, and values once a minute.

    Values are in the notation of `promtool test rules`: `0+1x30` is 0, 1, 2 … 30.
    """

    fires: dict[str, str]
    quiet: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. `expression` is PromQL, `wait_s` how long it must hold before the alert fires."""

    name: str
    severity: Severity
    expression: str
    wait_s: int
    summary: str
    meaning: str
    action: str
    example: Example
