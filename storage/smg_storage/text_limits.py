"""Limits of short texts beside documents, the same in every store: what one takes, all take.

A text of PostgreSQL holds no NUL, and columns have lengths. A store without columns refuses the same, so that
moving to another one changes no answer.
"""

from typing import Final

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Item, StoredResponse

ID_CHARACTERS: Final = 64
TYPE_CHARACTERS: Final = 64
WORD_CHARACTERS: Final = 16
"""Of a role or a status."""
NAME_CHARACTERS: Final = 256
"""Of a model or a node."""
KEY_CHARACTERS: Final = 128


def check_text(text: str, characters_max: int | None) -> None:
    """Raise TOO_LARGE for a longer text, and CORRUPT for one with a NUL."""
    if characters_max is not None and len(text) > characters_max:
        raise StoreError(StoreErrorKind.TOO_LARGE, f"a name of {len(text)} characters")
    if "\0" in text:
        raise StoreError(StoreErrorKind.CORRUPT, "a name with a NUL character")


def check_item(record: Item) -> None:
    """Raise what `check_text` raises for the texts of an item."""
    check_text(record.item_type, TYPE_CHARACTERS)
    check_text(record.role, WORD_CHARACTERS)
    check_text(record.status, WORD_CHARACTERS)


def check_response(record: StoredResponse) -> None:
    """Raise what `check_text` raises for the texts of a response."""
    check_text(record.model, NAME_CHARACTERS)
    check_text(record.safety_identifier, KEY_CHARACTERS)
    check_text(record.owner, NAME_CHARACTERS)
