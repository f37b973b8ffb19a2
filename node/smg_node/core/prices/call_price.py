"""Call price: what one run of a tool costs, as an operator writes it: `0.005`, in units of the currency. Pure."""

import re
from typing import Final

from smg_node.core.prices.price import PICO

CALL_PRICE_MAX: Final = 1_000_000
"""In units of the currency."""
_PLACES: Final = 12
_FORM: Final = re.compile(rf"(\d{{1,7}})(?:\.(\d{{1,{_PLACES}}}))?", re.ASCII)


def read_call_price(text: str) -> int:
    """Return a price in pico; ValueError for what is no decimal number from 0 to a million with up to 12 places."""
    said = _FORM.fullmatch(text)
    if said is not None:
        pico = int(said[1]) * PICO + int((said[2] or "").ljust(_PLACES, "0"))
        if pico <= CALL_PRICE_MAX * PICO:
            return pico
    raise ValueError(
        f"must be a decimal number from 0 to {CALL_PRICE_MAX} with at most {_PLACES} places: {text[:32]!r}"
    )
