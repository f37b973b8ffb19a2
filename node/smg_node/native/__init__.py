"""Loops over bytes and ids that are worth compiling: plain Python, and machine code where a compiler was there."""

from importlib.util import find_spec


def compiled() -> bool:
    """Whether this room runs as machine code; `tools/compile.py` makes that, when the node is installed."""
    found = find_spec("smg_node.native.token_ids")
    return found is not None and not str(found.origin).endswith(".py")
