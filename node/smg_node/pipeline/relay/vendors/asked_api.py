"""Asked API: the API that a translated request is written for. Pure."""

from typing import Final

from smg_node.engines.http.vendor_side import VendorSide

_OWN_NAMES: Final = {"gemini": "generate_content"}
"""What vendors' side calls an API whose dialect has another name here."""


def asked_api(side: VendorSide, dialect: str) -> str:
    """Return the API: that of the client's dialect where the vendor has it, else the vendor's preferred one."""
    own = _OWN_NAMES.get(dialect, dialect)
    return own if own in side.dialects else side.dialects[0]
