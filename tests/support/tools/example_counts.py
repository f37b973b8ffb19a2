"""Example counts of property tests: a third for each change, all of them for `make test-long`."""

import os
from typing import Final

LONG_VARIABLE: Final = "SMG_TEST_LONG"
"""Set in the environment by the option `--long`, because decorators ask before any fixture is there."""
_SHARE: Final = 3


def example_count(most: int) -> int:
    """Return how many examples to try of the `most` that a whole run tries."""
    return most if os.environ.get(LONG_VARIABLE) else -(-most // _SHARE)
