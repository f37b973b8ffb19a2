"""Types of the pixel kernels, which exist as machine code only."""

from typing import Any

from numpy.typing import NDArray

def has_avx2() -> bool: ...
def horizontal(
    source: NDArray[Any],
    made: NDArray[Any],
    starts: NDArray[Any],
    counts: NDArray[Any],
    weights: NDArray[Any],
    precision: int,
    avx2: bool,
) -> None: ...
def vertical(
    source: NDArray[Any],
    made: NDArray[Any],
    starts: NDArray[Any],
    counts: NDArray[Any],
    weights: NDArray[Any],
    precision: int,
    avx2: bool,
) -> None: ...
def merged(
    source: NDArray[Any],
    made: NDArray[Any],
    rows: int,
    columns: int,
    merge: int,
    copies: int,
    avx2: bool,
) -> None: ...
def merged_frames(
    source: NDArray[Any], made: NDArray[Any], rows: int, columns: int, merge: int
) -> None: ...
def base64_decoded(text: str, start: int, avx2: bool) -> bytes | None: ...
def widened(levels: NDArray[Any], table: NDArray[Any], made: NDArray[Any], run: int) -> None: ...
