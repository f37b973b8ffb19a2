"""A plugin of pytest (`-p support.tools.interpreted_plugin`) that has all of the node run as Python, also what is machine code."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType


class SourceFinder(MetaPathFinder):
    """Finds modules of the node by their source."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("smg_node."):
            return None
        for folder in path or ():
            finder = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
            if (spec := finder.find_spec(fullname, target)) is not None:
                return spec
        return None


def pytest_load_initial_conftests() -> None:
    assert not any(name.startswith("smg_node.") for name in sys.modules), "it is too late"
    sys.meta_path.insert(0, SourceFinder())
