"""The modules that are compiled in each form there is: as Python always, as machine code where that was made."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Final

import smg_node

PACKAGE: Final = Path(smg_node.__file__ or "").parent


def twins(name: str) -> list[ModuleType]:
    """The module of that name in `smg_node` as Python, then as it is imported if that is something else.

    What the former imports is in use, and may be machine code: `support.tools.interpreted_plugin` has all of it as Python.
    """
    source = (PACKAGE / name.replace(".", "/")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"interpreted_{name.replace('.', '_')}", source)
    assert spec is not None
    assert spec.loader is not None
    interpreted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(interpreted)
    used = importlib.import_module(f"smg_node.{name}")
    return [interpreted] if used.__file__ == str(source) else [interpreted, used]


def form(module: ModuleType) -> str:
    return "python" if str(module.__file__).endswith(".py") else "compiled"
