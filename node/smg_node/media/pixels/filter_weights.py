"""Filter weights of antialiased resizing along one axis, as 16-bit integers; pure.

The arithmetic is that of torchvision for 8-bit pictures, which engines use: for n samples becoming m, scale = n / m,
f = max(scale, 1) and support = f * radius (Lanczos 3, bicubic 2, bilinear 1), output i is centred at c = (i + 0.5) * scale and
made of the samples int(c - support + 0.5) to int(c + support + 0.5), cut to the picture, with the weights
filter((j - c + 0.5) / f), divided by their sum in doubles. They become integers of the most bits that 16 can hold for
the largest weight of the axis, rounded half away from zero.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles: TypeAlias = NDArray[np.float64]
    Weights: TypeAlias = NDArray[np.int16]
    Places: TypeAlias = NDArray[np.int32]

Kernel: TypeAlias = Literal["bicubic", "bilinear", "lanczos"]

PRECISION_MAX: Final = 22
"""Most bits after the point: 8 are the pixel's, 2 are spare in 32."""
_WEIGHT_LIMIT: Final = 1 << 15
_CUBIC: Final = -0.5
"""The free parameter of bicubic interpolation, as Pillow and torch have it where they antialias."""
_LOBES: Final = 3.0
_RADIUS: Final[dict[Kernel, int]] = {"bicubic": 2, "bilinear": 1, "lanczos": 3}


class AxisWeights(NamedTuple):
    """How every output sample of one axis is made.

    Output i is the sum of `weights[i, k]` times input `starts[i] + k`, for k below `counts[i]`, plus half, shifted
    right by `precision`. `weights` is [outputs, most samples, and up to a multiple of four], zero from `counts[i]` on;
    no sample lies outside.
    """

    starts: "Places"
    counts: "Places"
    weights: "Weights"
    precision: int


@lru_cache(maxsize=64)
def axis_weights(samples: int, outputs: int, kernel: Kernel) -> AxisWeights:
    """Return the weights that make `outputs` samples of `samples`; arrays are shared and must not be changed."""
    assert samples > 0
    assert outputs > 0
    scale = samples / outputs
    stretch = max(scale, 1.0)
    support = stretch * _RADIUS[kernel]
    centres = (np.arange(outputs, dtype=np.float64) + 0.5) * scale
    starts = np.maximum((centres - support + 0.5).astype(np.int64), 0)
    ends = np.minimum((centres + support + 0.5).astype(np.int64), samples)
    counts = ends - starts
    taps = int(counts.max())
    places = starts[:, None] + np.arange(taps)
    weights = _filtered((places - centres[:, None] + 0.5) * (1.0 / stretch), kernel)
    weights[np.arange(taps) >= counts[:, None]] = 0.0
    total = np.zeros(outputs, dtype=np.float64)
    for tap in range(taps):
        # One after the other: the order in which doubles are added shows in their last bit.
        total += weights[:, tap]
    weights /= total[:, None]
    precision = _precision(float(weights.max()))
    scaled = weights * (1 << precision)
    whole = np.zeros((outputs, -(-taps // 4) * 4), dtype=np.int16)
    whole[:, :taps] = np.where(scaled < 0, scaled - 0.5, scaled + 0.5)
    found = (starts.astype(np.int32), counts.astype(np.int32), whole)
    for array in found:
        array.setflags(write=False)
    return AxisWeights(*found, precision)


def _precision(largest: float) -> int:
    """Return how many bits after the point the weights of an axis get."""
    precision = 0
    while precision < PRECISION_MAX:
        if int(0.5 + largest * (1 << (precision + 1))) >= _WEIGHT_LIMIT:
            break
        precision += 1
    return precision


def _filtered(distance: "Doubles", kernel: Kernel) -> "Doubles":
    """Return the filter's value at each distance from the centre, in units of its own width."""
    x = np.abs(distance)
    if kernel == "bilinear":
        return np.where(x < 1.0, 1.0 - x, 0.0)
    if kernel == "lanczos":
        return np.where(x < _LOBES, _sinc(x) * _sinc(x / _LOBES), 0.0)
    near = ((_CUBIC + 2.0) * x - (_CUBIC + 3.0)) * x * x + 1
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * _CUBIC
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _sinc(distance: "Doubles") -> "Doubles":
    """Return sin(pi x) / (pi x); by the sine of the C library, because the last bits of others differ."""
    angles = (distance * math.pi).reshape(-1)
    values = [math.sin(angle) / angle if angle else 1.0 for angle in angles.tolist()]
    return np.array(values, dtype=np.float64).reshape(distance.shape)
