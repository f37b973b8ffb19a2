"""Libraries of the extra `media`: looked for with the first picture, and named where they are missing."""

from functools import cache
from importlib.util import find_spec
from typing import Final

from smg_node.core.errors import unsupported

_NEEDED: Final = ("numpy", "PIL")


@cache
def has_libraries() -> bool:
    """Whether pictures can be worked on here: looked for once, as what nobody has imported is on the disk each time."""
    return all(find_spec(name) is not None for name in _NEEDED)


def require_libraries(where: str | None) -> None:
    """Return if pictures can be worked on here; else SmgError `unsupported_parameter` that says what to install."""
    if not has_libraries():
        install = "pip install 'smg-node[media]'"
        raise unsupported(f"this node was installed without pictures ({install})", where)
