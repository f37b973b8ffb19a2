"""Libraries of the extra `video`: looked for with the first clip, and named where they are missing."""

from importlib.util import find_spec
from typing import Final

from smg_node.media.pixels.libraries import has_libraries

INSTALL: Final = "pip install 'smg-node[media,video]'"
WITHOUT: Final = f"this node was installed without what reads videos ({INSTALL})"


def has_video_libraries() -> bool:
    """Whether clips can be decoded here: nothing is imported for it, as other processes do that."""
    return has_libraries() and find_spec("av") is not None
