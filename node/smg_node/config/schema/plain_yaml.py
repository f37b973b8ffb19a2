"""Plain YAML: what operators write in files, read as YAML 1.2 has it: `on` and `yes` are words, and so is a date.

PyYAML reads YAML 1.1, where the key `on` of a route's target is true and an API's version of 2024-10-21 is a day.
"""

import re
from typing import Any, Final

import yaml

_BOOL: Final = "tag:yaml.org,2002:bool"
_NOT_PLAIN: Final = frozenset({_BOOL, "tag:yaml.org,2002:timestamp"})


class PlainLoader(yaml.SafeLoader):
    """Loader that knows true and false, and no other words for them."""

    yaml_implicit_resolvers: Final = {  # type: ignore[misc]  # nobody changes it here
        first: [(tag, form) for tag, form in resolvers if tag not in _NOT_PLAIN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


PlainLoader.add_implicit_resolver(
    _BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def read_plain(text: str) -> Any:
    """Return what a text says, as plain values; ValueError, in an operator's words, for what is no YAML or has anchors."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, PlainLoader)):
            raise ValueError("anchors are not understood; write the values out")
        return yaml.load(text, PlainLoader)  # a SafeLoader with fewer words
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
