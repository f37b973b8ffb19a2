"""Slices of seeds as parameters: the first of them for each change, the others for `make test-long`."""

from collections.abc import Sequence
from typing import Any

import pytest


def first_and_long(seeds: range, *, now: int) -> Sequence[Any]:
    """Return the first seed of each slice as a parameter; those after the first `now` are marked as long."""
    return [
        pytest.param(seed, marks=[pytest.mark.long] if at >= now else [])
        for at, seed in enumerate(seeds)
    ]
