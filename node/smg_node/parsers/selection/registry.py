"""Registry of all formats by name: one module each in `reasoning`, `tools` and `combined`, found by
looking.

A file that is put there is known; nothing else has to be told of it.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from smg_node.core.registry import Registry
from smg_node.parsers import combined as joint
from smg_node.parsers import reasoning as thoughts
from smg_node.parsers import tools
from smg_node.parsers.reading.answer_grammar import PLAIN
from smg_node.parsers.reading.format import JointFormat, ThoughtFormat, ToolFormat

F = TypeVar("F", ThoughtFormat, ToolFormat, JointFormat)


@cache
def known_thoughts() -> Registry[ThoughtFormat]:
    """Return how thoughts may be printed; `plain` is a model without any."""
    registry = _registry(
        "reasoning parser", thoughts.__name__, list(thoughts.__path__), ThoughtFormat
    )
    registry.add(PLAIN.name, PLAIN)
    return registry


@cache
def known_tools() -> Registry[ToolFormat]:
    """Return how calls may be printed."""
    return _registry("tool parser", tools.__name__, list(tools.__path__), ToolFormat)


@cache
def known_joint() -> Registry[JointFormat]:
    """Return the formats that are both."""
    return _registry("parser", joint.__name__, list(joint.__path__), JointFormat)


def _registry(kind: str, package: str, path: list[str], wanted: type[F]) -> Registry[F]:
    registry: Registry[F] = Registry(kind)
    for module in sorted(found.name for found in iter_modules(path)):
        for each in import_module(f"{package}.{module}").FORMATS:
            assert isinstance(each, wanted), f"{package}.{module}: {each.name} is no {kind}"
            registry.add(each.name, each)
    return registry
