"""Native: loops over bytes and ids that are compiled where a C compiler was there, else plain
Python.
"""

from importlib.util import find_spec


def compiled() -> bool:
    """Whether this room runs as machine code; `tools/compile.py` makes that, when the node is installed."""
    found = find_spec("smg_node.native.token_ids")
    return found is not None and not str(found.origin).endswith(".py")
