"""Filters of chat templates: a closed list, each paying the meter for what it makes.

The names are those of the reference environment, less the ones no prompt needs and that are hard to
bound or that ask for chance: random, pprint, urlize, wordwrap, striptags, xmlattr, filesizeformat.
What has a guard here behaves as in the reference otherwise.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from jinja2 import filters as stock
from jinja2.exceptions import FilterArgumentError
from jinja2.utils import pass_context
from markupsafe import Markup, escape

from smg_node.prompts.jinja.metered_operations import listed
from smg_node.prompts.jinja.methods import lines, percent, replacements
from smg_node.prompts.jinja.predicates import number
from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.prompts.jinja.safe_values import (
    ELEMENT,
    POINTER,
    flat,
    items,
    kept,
    metered,
    paid,
    show,
    weigh,
)

Function = Callable[..., Any]

_INDENT_MAX: Final = 64
_SEPARATOR_MAX: Final = 16
# Python's own limit for turning decimal digits into an integer, applied to every base.
_DIGITS_MAX: Final = 4300
_ROUND_MAX: Final = 300
# Ordering looks at each element some twenty times, in one call that cannot be stopped.
_ORDER_MAX: Final = 100_000
# `wordcount`, `title` and `urlencode` make an object for every few characters.
_WORDS_MAX: Final = 1 << 20


def _of_text(filter_: Function, *, factor: int = 1, most: int | None = None) -> Function:
    """A filter that turns one text into another, at most `factor` times as long."""

    @pass_context
    def of_text(context: ChatContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        meter = context.meter
        text = value if isinstance(value, str) else show(meter, value)
        if most is not None and len(text) > most:
            meter.refuse_size()
        for arg in (*args, *kwargs.values()):
            flat(meter, arg)
        meter.spend(factor * len(text))
        return kept(meter, filter_(text, *args, **kwargs))

    return of_text


def _of_values(filter_: Function) -> Function:
    """A filter that orders or compares elements: they are weighed first."""

    @pass_context
    def of_values(context: ChatContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        meter = context.meter
        values = items(meter, value)
        if len(values) > _ORDER_MAX:
            raise FilterArgumentError(f"more than {_ORDER_MAX} elements cannot be put in order")
        weigh(meter, values)
        for arg in (*args, *kwargs.values()):
            flat(meter, arg)
        return filter_(context.environment, values, *args, **kwargs)

    return of_values


def _lazy(filter_: Function, *, context_first: bool = True) -> Function:
    """A filter that yields its elements one by one; each is paid for as it comes."""

    @pass_context
    def lazy(context: ChatContext, value: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        meter = context.meter
        values = metered(meter, value) if value else value
        first = (context,) if context_first else ()
        return metered(meter, filter_(*first, values, *args, **kwargs))

    return lazy


@pass_context
def tojson(
    context: ChatContext,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return `value` as JSON, as Python's `json.dumps` writes it, without HTML escaping."""
    meter = context.meter

    def write() -> str:
        if indent is None and separators is None and not ensure_ascii and not sort_keys:
            return _JSON.encode(value)
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    step = _indentation(indent)
    if separators is not None and sum(map(len, separators)) > _SEPARATOR_MAX:
        raise FilterArgumentError("tojson: separators are too long")
    if id(value) in meter.given:
        form = (bool(ensure_ascii), indent, separators and tuple(separators), bool(sort_keys))
        return paid(meter, context.json_texts.text(value, form, write))
    weight = weigh(meter, value)
    if step:
        # An element is a pointer's weight at least and is indented by its depth.
        meter.allow(weight // POINTER * step * _depth(value))
    return paid(meter, write())


# What `json.dumps` would make anew for every call.
_JSON: Final = json.JSONEncoder(ensure_ascii=False)


def _indentation(indent: int | str | None) -> int:
    if indent is None:
        return 0
    step = len(indent) if isinstance(indent, str) else indent
    if step > _INDENT_MAX:
        raise FilterArgumentError(f"tojson: indent must be at most {_INDENT_MAX}")
    return step


def _depth(value: Any) -> int:
    depth = 0
    level = [value]
    while level:
        depth += 1
        level = [
            inner
            for item in level
            if isinstance(item, (list, tuple, dict))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


@pass_context
def join(context: ChatContext, value: Any, d: str = "", attribute: Any = None) -> str:
    """Return the elements' texts with `d` between them."""
    meter = context.meter
    values = items(meter, value)
    if attribute is not None:
        values = list(map(stock.make_attrgetter(context.environment, attribute), values))
    texts = [value if type(value) is str else show(meter, value) for value in values]
    between = show(meter, d)
    meter.allow(sum(map(len, texts)) + len(between) * len(texts))
    return str(between).join(texts)


@pass_context
def replace(context: ChatContext, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    """Return `s` with `old` replaced by `new`."""
    meter = context.meter
    text, before, after = (str(show(meter, value)) for value in (s, old, new))
    times = -1 if count is None else count
    meter.allow(replacements(text, before, after, times))
    return text.replace(before, after, times)


@pass_context
def indent(
    context: ChatContext, s: Any, width: int | str = 4, first: bool = False, blank: bool = False
) -> str:
    """Return `s` with its lines indented."""
    step = len(width) if isinstance(width, str) else int(width)
    if isinstance(s, str):
        context.meter.allow(len(s) + (max(0, step) + ELEMENT) * (lines(s) + 1))
    text: str = kept(context.meter, stock.do_indent(s, width, first, blank))
    return text


@pass_context
def center(context: ChatContext, value: Any, width: int = 80) -> str:
    """Return `value` in the middle of `width` characters."""
    text = show(context.meter, value)
    context.meter.allow(max(len(text), width))
    return text.center(width)


@pass_context
def format_percent(context: ChatContext, value: Any, *args: Any, **kwargs: Any) -> str:
    """Return `value % args`."""
    if args and kwargs:
        raise FilterArgumentError("can't handle positional and keyword arguments at the same time")
    return percent(context.meter, show(context.meter, value), kwargs or args)


@pass_context
def total(context: ChatContext, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """Return the sum of numbers."""
    values = items(context.meter, value)
    if attribute is not None:
        values = list(map(stock.make_attrgetter(context.environment, attribute), values))
    if not all(isinstance(each, (int, float)) for each in (start, *values)):
        raise FilterArgumentError("sum: only numbers can be summed")
    return sum(values, start)


@pass_context
def batch(context: ChatContext, value: Any, linecount: int, fill_with: Any = None) -> Iterator[Any]:
    """Yield lists of `linecount` elements."""
    context.meter.allow(POINTER * abs(linecount))
    return metered(
        context.meter, stock.do_batch(metered(context.meter, value), linecount, fill_with)
    )


def round_number(value: Any, precision: int = 0, method: Any = "common") -> float:
    """Return a number rounded; as the reference, for precisions that mean something."""
    if abs(precision) > _ROUND_MAX:
        raise FilterArgumentError(f"round: precision must be within {_ROUND_MAX}")
    return stock.do_round(number(value), precision, method)


def to_int(value: Any, default: Any = 0, base: int = 10) -> Any:
    """Return `value` as an integer, or `default`."""
    if isinstance(value, str) and len(value) > _DIGITS_MAX:
        return default
    return stock.do_int(value, default, base)


@pass_context
def reverse(context: ChatContext, value: Any) -> Any:
    """Return a text backwards, or the elements of a sequence from its end."""
    return kept(context.meter, stock.do_reverse(value))


@pass_context
def dictsort(context: ChatContext, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the (key, value) pairs of a mapping in order."""
    weigh(context.meter, value)
    return stock.do_dictsort(value, *args, **kwargs)


@pass_context
def pairs(context: ChatContext, value: Any) -> Iterator[Any]:
    """Yield the (key, value) pairs of a mapping; nothing for an undefined one."""
    return metered(context.meter, stock.do_items(value))


@pass_context
def urlencode(context: ChatContext, value: Any) -> str:
    """Return `value` quoted for a URL."""
    meter = context.meter
    if weigh(meter, value, printing=True) > _WORDS_MAX:
        meter.refuse_size()
    return paid(meter, stock.do_urlencode(value))


@pass_context
def truncate(context: ChatContext, s: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the beginning of a text."""
    return kept(context.meter, stock.do_truncate(context.environment, s, *args, **kwargs))


@pass_context
def mark_safe(context: ChatContext, value: Any) -> Markup:
    """Return `value` marked as safe, which changes how it joins with other texts."""
    return Markup(show(context.meter, value))


def _text_filters() -> dict[str, Function]:
    return {
        "capitalize": _of_text(stock.do_capitalize, factor=3),
        "e": _of_text(escape, factor=5),
        "escape": _of_text(escape, factor=5),
        "forceescape": _of_text(stock.do_forceescape, factor=5),
        "lower": _of_text(stock.do_lower, factor=3),
        "string": _of_text(lambda text: text),
        "title": _of_text(stock.do_title, factor=3, most=_WORDS_MAX),
        "trim": _of_text(stock.do_trim),
        "upper": _of_text(stock.do_upper, factor=3),
        "wordcount": _of_text(stock.do_wordcount, most=_WORDS_MAX),
    }


def _value_filters() -> dict[str, Function]:
    return {
        "groupby": _of_values(stock.sync_do_groupby),
        "max": _of_values(stock.do_max),
        "min": _of_values(stock.do_min),
        "sort": _of_values(stock.do_sort),
        "unique": _of_values(stock.sync_do_unique),
        "map": _lazy(stock.sync_do_map),
        "reject": _lazy(stock.sync_do_reject),
        "rejectattr": _lazy(stock.sync_do_rejectattr),
        "select": _lazy(stock.sync_do_select),
        "selectattr": _lazy(stock.sync_do_selectattr),
        "slice": _lazy(stock.sync_do_slice, context_first=False),
    }


def _same_filters() -> dict[str, Function]:
    names = ("abs", "attr", "count", "d", "default", "first", "float", "last", "length")
    return {name: stock.FILTERS[name] for name in names}


FILTERS: Final[Mapping[str, Function]] = MappingProxyType(
    _same_filters()
    | _text_filters()
    | _value_filters()
    | {
        "batch": batch,
        "center": center,
        "dictsort": dictsort,
        "format": format_percent,
        "indent": indent,
        "int": to_int,
        "items": pairs,
        "join": join,
        "list": listed,
        "replace": replace,
        "reverse": reverse,
        "round": round_number,
        "safe": mark_safe,
        "sum": total,
        "tojson": tojson,
        "truncate": truncate,
        "urlencode": urlencode,
    }
)
