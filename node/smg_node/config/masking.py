"""Masking: URLs without user names, passwords and whatever in their queries may be a secret."""

import re
from typing import Final

MASK: Final = "**********"
# Up to the last @ of the host's part: a password may have one.
_USER_INFO: Final = re.compile(r"//[^/\s]*@")
_SECRET_QUERY: Final = re.compile(
    r"([?&][^=&\s]*(?:pass|pwd|secret|token|key|credential|auth)[^=&\s]*=)[^&\s]+", re.IGNORECASE
)


def masked(text: str) -> str:
    """Return a text as it may be shown."""
    return _SECRET_QUERY.sub(rf"\1{MASK}", _USER_INFO.sub(f"//{MASK}@", text))
