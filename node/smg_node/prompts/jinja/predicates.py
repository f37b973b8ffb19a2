"""Predicates: the tests (`is …`) of a chat template, those of the reference environment.

The comparing ones weigh both sides first; the arithmetic ones take numbers only, because `%` on a text
is formatting.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from jinja2 import tests as stock
from jinja2.runtime import Undefined
from jinja2.utils import pass_context

from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.prompts.jinja.safe_values import flat, show

Function = Callable[..., Any]


def number(value: Any) -> Any:
    """Return `value` if it is a number: on a text, `%` would format it."""
    if isinstance(value, Undefined):
        return value + 0  # raises what the reference raises for an undefined value
    if not isinstance(value, (int, float)):
        raise TypeError(f"a number is needed here, not a {type(value).__name__}")
    return value


def _of_two(test: Function) -> Function:
    """A test that compares: both sides are weighed first."""

    @pass_context
    def of_two(context: ChatContext, value: Any, other: Any) -> Any:
        meter = context.meter
        return test(flat(meter, value), flat(meter, other))

    return of_two


@pass_context
def _is_lower(context: ChatContext, value: Any) -> bool:
    return show(context.meter, value).islower()


@pass_context
def _is_upper(context: ChatContext, value: Any) -> bool:
    return show(context.meter, value).isupper()


_STOCK: Final[Mapping[str, Any]] = MappingProxyType(stock.TESTS)
_COMPARING: Final = (
    *("==", "!=", ">", ">=", "<", "<=", "in"),
    *("eq", "equalto", "ne", "gt", "greaterthan", "ge", "lt", "lessthan", "le"),
)
TESTS: Final[Mapping[str, Function]] = MappingProxyType(
    dict(_STOCK)
    | {name: _of_two(_STOCK[name]) for name in _COMPARING}
    | {
        "even": lambda value: number(value) % 2 == 0,
        "odd": lambda value: number(value) % 2 == 1,
        "divisibleby": lambda value, num: number(value) % number(num) == 0,
        "lower": _is_lower,
        "upper": _is_upper,
    }
)
