"""Replacement of a data process by one that shares a vocabulary: the code of the error that tells of it."""

from typing import Final

REPLACED_CODE: Final = "process_replaced"
"""Says nothing of the files that were to be read: this process ends, and another one has them."""
