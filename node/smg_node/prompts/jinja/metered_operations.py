"""Metered operations: the filters that `meter_injection` puts into a template so that everything it
does is paid for.

They are filters only because that is the one thing Jinja lets a tree be extended with; their names
start with an underscore, and a template that uses one itself merely pays twice.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from jinja2.utils import pass_context

from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.prompts.jinja.safe_values import ELEMENT, SCALARS, flat, items, kept, paid, show

# A small text is paid for by its length; a larger one by its size in memory.
_SMALL: Final = 4096


@pass_context
def tick(context: ChatContext, cost: int) -> None:
    """Pay for one turn of a loop or one call of a macro."""
    meter = context.meter
    meter.left -= cost
    if meter.left < meter.look_at:
        meter.look(0)


@pass_context
def ticked(context: ChatContext, value: Any) -> Any:
    """Return `value`; pay for one look at a loop's condition."""
    context.meter.spend(ELEMENT)
    return value


@pass_context
def shown(context: ChatContext, value: Any) -> str:
    """Return the text of what is printed."""
    if type(value) is str and len(value) < _SMALL:
        meter = context.meter
        meter.left -= len(value)
        if meter.left < meter.look_at:
            meter.look(0)
        return value
    return show(context.meter, value)


@pass_context
def made(context: ChatContext, value: Any) -> Any:
    """Return the result of a concatenation or a slice, paid for."""
    if type(value) is str and len(value) < _SMALL:
        meter = context.meter
        meter.left -= len(value)
        if meter.left < meter.look_at:
            meter.look(0)
        return value
    return kept(context.meter, value)


@pass_context
def compared(context: ChatContext, value: Any) -> Any:
    """Return `value`, known to be safe to compare, search and hash; pays for a look at all of it."""
    if type(value) is str:
        context.meter.spend(len(value))
        return value
    return value if type(value) in SCALARS else flat(context.meter, value)


@pass_context
def searched(context: ChatContext, value: Any) -> Any:
    """Return `value`, in which a constant is looked for; pays for a look at every element."""
    if isinstance(value, (str, list, tuple)):
        context.meter.spend(len(value))
    return value


@pass_context
def glued(context: ChatContext, values: tuple[Any, ...]) -> str:
    """Return the texts of `values` in one, as the operator `~` does."""
    meter = context.meter
    texts = [value if type(value) is str else show(meter, value) for value in values]
    return paid(meter, "".join(texts))


@pass_context
def listed(context: ChatContext, value: Any) -> list[Any]:
    """Return the elements of `value` as a new list."""
    return items(context.meter, value)


METERING: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "_tick": tick,
        "_ticked": ticked,
        "_shown": shown,
        "_made": made,
        "_compared": compared,
        "_searched": searched,
        "_glued": glued,
        "_listed": listed,
    }
)
