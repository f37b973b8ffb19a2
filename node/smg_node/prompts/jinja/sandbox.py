"""Sandbox: Jinja environment of chat templates, with closed lists of attributes and callables.

It behaves as the reference one does (block trimming, loop controls, the generation tag, plain JSON)
and gives a template nothing that it could harm the node with. On top of Jinja's own immutable
sandbox every attribute comes from a closed list, every call from a closed list of callables, and
whatever can make a large thing out of a small one is paid for first; see `meter_injection` and
`render_budget`. The accesses that every template makes by the dozen, items of a dict by attribute,
take a short way that Jinja's sandbox does not have: it looks for an attribute first and pays for
the exception.
"""

from datetime import UTC, datetime
from types import BuiltinMethodType, MethodType
from typing import Any, Final, NoReturn

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from smg_node.prompts.jinja.filters import FILTERS
from smg_node.prompts.jinja.json_cache import JsonTexts
from smg_node.prompts.jinja.metered_operations import METERING
from smg_node.prompts.jinja.methods import GuardedMethod, format_text, guarded, percent, plain
from smg_node.prompts.jinja.predicates import TESTS
from smg_node.prompts.jinja.render_budget import DEPTH_MAX, LimitError, Meter
from smg_node.prompts.jinja.render_context import ChatContext
from smg_node.prompts.jinja.safe_values import POINTER, SCALARS, kept, show, weigh

_DICT_NAMES: Final = frozenset(dir(dict))
_SEQUENCES: Final = frozenset({list, tuple, str})
# An integer of more bits than this is no number a prompt counts with.
_BITS_MAX: Final = 4096
_DATE_FORMAT_MAX: Final = 1024


_FUNCTIONS: Final = (safe_range, dict, Namespace, Cycler, Joiner)


class RefusedError(Exception):
    """The template itself refused the conversation, with `raise_exception`."""


class Today:
    """`strftime_now`: formats the one time that a whole render sees."""

    __slots__ = ("_now",)

    def __init__(self, now: datetime) -> None:
        self._now = now

    def __call__(self, format: str) -> str:  # noqa: A002  # the reference's own name for it
        """Return the time in `format`."""
        if len(format) > _DATE_FORMAT_MAX:
            raise TypeError(f"strftime_now takes a format of at most {_DATE_FORMAT_MAX} characters")
        return self._now.strftime(format)


class Moment:
    """`Today` of a moment that is converted on first use only; in milliseconds since 1970."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def __call__(self, format: str) -> str:  # noqa: A002  # as above
        """Return the time in `format`."""
        return Today(datetime.fromtimestamp(self._now_ms / 1000, UTC))(format)


def raise_exception(message: object) -> NoReturn:
    """Refuse the conversation."""
    raise RefusedError(message if isinstance(message, str) else f"{type(message).__name__}")


class GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}`: marks what the assistant said; prints it as it is."""

    tags = {"generation"}  # noqa: RUF012  # Jinja's own declaration

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the body in a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """One environment for all templates; it holds no render's state."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationTag, LoopControlExtension],
            cache_size=0,
        )
        self.filters = {**FILTERS, **METERING}
        self.tests = dict(TESTS)
        self.globals = {
            "range": safe_range,
            "dict": dict,
            "namespace": Namespace,
            "cycler": Cycler,
            "joiner": Joiner,
            "raise_exception": raise_exception,
        }
        self.eval_context = EvalContext(self)
        self.json_texts = JsonTexts()

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return `obj.attribute` as a template sees it: attributes, then items, else undefined."""
        kind = type(obj)
        if kind is dict:
            if attribute in _DICT_NAMES:
                return self._attribute(obj, kind, attribute)
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        if plain(kind, attribute):
            return getattr(obj, attribute)
        if kind is Namespace:
            return self._of_namespace(obj, attribute)
        if isinstance(obj, Undefined):
            return super().getattr(obj, attribute)  # raises, naming what is undefined
        if hasattr(obj, attribute):
            return self._attribute(obj, kind, attribute)
        return self.undefined(obj=obj, name=attribute)

    def _of_namespace(self, obj: Any, name: str) -> Any:
        if name.startswith("_"):
            return self.unsafe_undefined(obj, name)
        try:
            return getattr(obj, name)
        except AttributeError:
            return self.undefined(obj=obj, name=name)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]` as a template sees it: items, then attributes, else undefined."""
        kind = type(obj)
        if type(argument) not in SCALARS:
            if kind is dict:
                raise TypeError("a list or dict cannot be the key of a dict here")
            return self.undefined(obj=obj, name=argument)
        if kind is dict or kind in _SEQUENCES:
            try:
                return obj[argument]
            except (TypeError, LookupError):
                if isinstance(argument, str) and hasattr(obj, argument):
                    return self._attribute(obj, kind, argument)
                return self.undefined(obj=obj, name=argument)
        if isinstance(obj, Undefined):
            return super().getitem(obj, argument)
        if isinstance(argument, str):
            return self.getattr(obj, argument)
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)

    def _attribute(self, obj: Any, kind: type, name: str) -> Any:
        """Return an attribute that exists, if a template may use it."""
        if plain(kind, name):
            return getattr(obj, name)
        guard = guarded(kind, name)
        if guard is not None:
            return GuardedMethod(obj, guard)
        if isinstance(obj, str) and name in ("format", "format_map"):
            return GuardedMethod(obj, self._format if name == "format" else self._format_map)
        if isinstance(obj, tuple) and name in ("grouper", "list"):  # what `groupby` yields
            return getattr(obj, name)
        return self.unsafe_undefined(obj, name)

    def _format(
        self, meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        return format_text(self, meter, text, args, kwargs)

    def _format_map(
        self, meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        (values,) = args
        return format_text(self, meter, text, (), values)

    # Mangled as in Jinja, so that a template may call a macro with an argument named `self`.
    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call one of the few things a template may call."""
        assert isinstance(__context, ChatContext)
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        meter = __context.meter
        if type(__obj) is Macro:
            return __self._call_macro(__context, __obj, args, kwargs)
        for value in args:
            if type(value) not in SCALARS and value:
                weigh(meter, value)
        if type(__obj) is BuiltinMethodType:
            owner = __obj.__self__
            if isinstance(owner, str):
                meter.spend(len(owner))  # it is read from end to end, whatever comes of it
            return kept(meter, __obj(*args, **kwargs))
        if type(__obj) is GuardedMethod:
            return kept(meter, __obj.run(meter, args, kwargs))
        return __self._call_rare(meter, __obj, args, kwargs)

    def _call_macro(
        self, context: ChatContext, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        meter = context.meter
        meter.depth += 1
        if meter.depth > DEPTH_MAX:
            raise LimitError("depth", f"its macros call each other more than {DEPTH_MAX} deep")
        result = macro(context.eval_ctx, *args, **kwargs)
        meter.depth -= 1
        return kept(meter, result)

    def _call_rare(
        self, meter: Meter, obj: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if isinstance(obj, Undefined):
            return obj(*args, **kwargs)  # raises, naming what is undefined
        if obj is raise_exception:
            return obj(*(show(meter, value) for value in args), **kwargs)
        method_of = type(obj.__self__) if type(obj) is MethodType else None
        if (
            any(obj is function for function in _FUNCTIONS)
            or type(obj) in (Today, Joiner, LoopContext)
            or method_of in (LoopContext, Cycler, Markup)
        ):
            return kept(meter, obj(*args, **kwargs))
        raise SecurityError(f"a {type(obj).__name__} cannot be called here")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply, raise or format; refused before the result could be too large."""
        assert isinstance(context, ChatContext)
        meter = context.meter
        if operator == "%":
            return percent(meter, left, right) if isinstance(left, str) else left % right
        if operator == "*":
            return _multiply(meter, left, right)
        return _power(left, right)


def _multiply(meter: Meter, left: Any, right: Any) -> Any:
    for many, times in ((left, right), (right, left)):
        if isinstance(many, (str, list, tuple)) and isinstance(times, int):
            unit = 1 if isinstance(many, str) else POINTER
            meter.allow(len(many) * max(0, times) * unit)
            return left * right
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    return left * right


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        _check_bits(left.bit_length() * right)
    return left**right


def _check_bits(bits: int) -> None:
    if bits > _BITS_MAX:
        raise LimitError("output", f"it makes an integer of more than {_BITS_MAX} bits")
