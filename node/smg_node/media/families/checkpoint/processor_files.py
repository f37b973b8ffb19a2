"""Processor files: the numbers of a checkpoint's image processor, from the files that the engine reads as well.

A value comes from the first place that has it: the operator's overrides, preprocessor_config.json, the image_processor
of processor_config.json, the family's own default. Each value is checked where it is read, and is noted with the place
it came from: the notes are what `explain` shows and what the family's fingerprint is made of.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from smg_node.media.family import TokenLookup
from smg_node.media.sizes import Size

OVERRIDES: Final = "models.media.processor"
PREPROCESSOR: Final = "preprocessor_config.json"
PROCESSOR: Final = "processor_config.json"
CONFIG: Final = "config.json"
DEFAULT: Final = "family default"

SIDE_MAX: Final = 1 << 16
"""Most pixels of any side in a configuration: what is beyond it is no picture."""
AREA_MAX: Final = 1 << 32
"""Largest area in a configuration, temporal copies included."""
TOKEN_ID_MAX: Final = (1 << 32) - 1
"""Largest id of a token: prompts are arrays of 32 bits."""

_SHOWN_MAX: Final = 60

Triple = tuple[float, float, float]
CLIP_MEAN: Final[Triple] = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Final[Triple] = (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN: Final[Triple] = (0.485, 0.456, 0.406)
IMAGENET_STD: Final[Triple] = (0.229, 0.224, 0.225)
HALF: Final[Triple] = (0.5, 0.5, 0.5)

_T = TypeVar("_T")
_Path = tuple[str, ...]
ProcessorLayer = tuple[str, Mapping[str, Any]]
"""A place of values, and what it has."""


class ProcessorError(Exception):
    """A checkpoint whose image processor is not one that is known here; the text says why."""


class ProcessorValue(NamedTuple):
    """A number of the image processor that is in force, and where it was found."""

    name: str
    value: object
    origin: str


class Normalization(msgspec.Struct, frozen=True):
    """What becomes of 8-bit values: `(x * rescale - mean) / std` a channel, or `x * rescale` where there is no mean.

    `stepwise` rescales first and normalises what was rounded, as torchvision's own transforms do; otherwise both are one
    step, as in transformers.
    """

    rescale: float
    mean: Triple | None
    std: Triple | None
    stepwise: bool = False


class ProcessorFiles:
    """Values of a checkpoint's processor, read from its files in the order of evidence.

    ProcessorError for a value that is not of its kind or outside its bounds; the text names it and its file.
    """

    placeholder_names: tuple[str, ...] = ("image_token_id", "image_token_index")
    """Keys of config.json for the id of a feature's place, the first one first."""
    placeholder_note = "image_token_id"

    def __init__(
        self, files: Mapping[str, bytes], *, overrides: Mapping[str, object], tokens: TokenLookup
    ) -> None:
        self.config = _document(files, CONFIG)
        self.processor = _document(files, PROCESSOR)
        self.tokens = tokens
        self._layers = self.layers(files, overrides)
        self._notes: dict[str, ProcessorValue] = {}

    def layers(
        self, files: Mapping[str, bytes], overrides: Mapping[str, object]
    ) -> tuple[ProcessorLayer, ...]:
        """Return the places of values, the first one first."""
        nested = self.processor.get("image_processor")
        return (
            (OVERRIDES, overrides),
            (PREPROCESSOR, self.document(files, PREPROCESSOR)),
            (PROCESSOR, nested if isinstance(nested, dict) else {}),
        )

    @staticmethod
    def document(files: Mapping[str, bytes], name: str) -> Mapping[str, Any]:
        """Return a decoded file, empty where there is none; ProcessorError for one that is no JSON object."""
        return _document(files, name)

    @property
    def model_type(self) -> str:
        """Return the model_type of config.json, empty where it has none."""
        found = self.config.get("model_type")
        return found if isinstance(found, str) else ""

    @property
    def values(self) -> tuple[ProcessorValue, ...]:
        """Return what was read so far, by name."""
        return tuple(self._notes[name] for name in sorted(self._notes))

    def fingerprint(self, family: str) -> str:
        """Return the digest of the family's name and all values read so far, 64 hex digits; origins do not count."""
        told = [family, [(each.name, each.value) for each in self.values]]
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()

    def integer(self, name: str, default: int | None, *paths: _Path, most: int = SIDE_MAX) -> int:
        """Return a whole number from 1 to `most`, from the first of `paths` that a place has; `name` is one of them."""
        value, origin = self._first(name, default, paths)
        return self._note(name, _whole(name, value, origin, most=most), origin)

    def number(self, name: str, default: float, *, most: float) -> float:
        """Return a number above zero and at most `most`."""
        value, origin = self._first(name, default, ())
        found = _finite(name, value, origin)
        if not 0 < found <= most:
            raise ProcessorError(f"{name} of {origin} is {found}, not above 0 and at most {most}")
        return self._note(name, found, origin)

    def config_integer(
        self, name: str, default: int | None, *path: str, most: int = SIDE_MAX
    ) -> int:
        """Return a whole number from 1 to `most` of config.json, at `path`."""
        value = _at(self.config, path or (name,))
        origin = DEFAULT if value is None else CONFIG
        value = default if value is None else value
        return self._note(name, _whole(name, value, origin, most=most), origin)

    def engine_integer(
        self, name: str, default: int | None, *path: str, most: int = SIDE_MAX
    ) -> int:
        """Return a whole number from 1 to `most` that engines take from config.json, at `path`, unless overridden."""
        value, origin = self._of_engine(name, default, path)
        return self._note(name, _whole(name, value, origin, most=most), origin)

    def engine_flag(self, name: str, *, default: bool) -> bool:
        """Return true or false that engines take from config.json unless overridden."""
        value, origin = self._of_engine(name, default, ())
        if not isinstance(value, bool):
            raise ProcessorError(f"{name} of {origin} is neither true nor false")
        return self._note(name, value, origin)

    def square(self, name: str, default: int) -> int:
        """Return the side of a square that is given as one number, as height and width, or as its shortest edge."""
        found = self.size(name, Size(default, default))
        if found.width != found.height:
            raise ProcessorError(f"{name} is not square")
        return found.width

    def size(self, name: str, default: Size) -> Size:
        """Return a size that is given as one number, as height and width, or as its shortest edge."""
        value, origin = self._first(name, None, ())
        if value is None:
            return self._note(name, default, DEFAULT)
        sides = value if isinstance(value, dict) else {"height": value, "width": value}
        edge = sides.get("shortest_edge")
        wide = _whole(name, sides.get("width", edge), origin, most=SIDE_MAX)
        high = _whole(name, sides.get("height", edge), origin, most=SIDE_MAX)
        return self._note(name, Size(wide, high), origin)

    def short_side(self, name: str, default: int) -> int:
        """Return the length that the shortest side of a picture gets, given as one number or as shortest_edge."""
        value, origin = self._first(name, None, ())
        if value is None:
            return self._note(name, default, DEFAULT)
        side = value.get("shortest_edge") if isinstance(value, dict) else value
        return self._note(name, _whole(name, side, origin, most=SIDE_MAX), origin)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value, origin = self._first(name, default, ())
        if not isinstance(value, bool):
            raise ProcessorError(f"{name} of {origin} is neither true nor false")
        return self._note(name, value, origin)

    def always(self, name: str) -> None:
        """Refuse a processor that leaves the step `name` out, such as do_resize: engines of its family cannot serve."""
        if not self.flag(name, default=True):
            raise ProcessorError(f"{name} is false")

    def kernel(self, default: int) -> int:
        """Return the resampling filter as Pillow counts them: 2 (bilinear) or 3 (bicubic); 1 (Lanczos) as a default."""
        value, origin = self._first("resample", default, ())
        if isinstance(value, bool) or value not in (2, 3, default):
            raise ProcessorError(
                f"resample of {origin} is {_shown(value)}: only 2 and 3 are reproduced here"
            )
        return self._note("resample", int(value), origin)

    def normalization(
        self, mean: Triple, std: Triple, *, default: bool = True, inside: str = ""
    ) -> Normalization:
        """Return how 8-bit values become the model's; `mean` and `std` are the family's own.

        `inside` names an object that may have them where they are not at the top.
        """
        self.always("do_rescale")
        value, origin = self._first("rescale_factor", 1 / 255, ())
        rescale = self._note("rescale_factor", _finite("rescale_factor", value, origin), origin)
        if not 0 < rescale <= 1:
            raise ProcessorError(f"rescale_factor of {origin} is {rescale}")
        if not self.flag("do_normalize", default=default):
            return Normalization(rescale, None, None)
        means, stds = (
            self._triple("image_mean", mean, inside),
            self._triple("image_std", std, inside),
        )
        if not all(each > 0 for each in stds):
            raise ProcessorError("image_std has a number that is not above zero")
        return Normalization(rescale, means, stds)

    def raw(self, *path: str) -> tuple[Any, str]:
        """Return a value as it was found, None where no file has it, and its origin; the caller notes what it reads."""
        return self._first(path[-1], None, (path,))

    def note(self, name: str, value: _T, origin: str) -> _T:
        """Note a value that is in force, and return it."""
        return self._note(name, value, origin)

    def token(self, text: str) -> int:
        """Return the id of a token that the family cannot do without."""
        found = self.tokens.token_id(text)
        if found is None:
            raise ProcessorError(f"the tokenizer has no token {text!r}")
        return found

    def placeholder(self, anchor: str) -> int:
        """Return config.json's id of a feature's place, such as image_token_id; else that of `anchor`."""
        for name in self.placeholder_names:
            for path in ((name,), ("text_config", name)):
                found = _at(self.config, path)
                if found is not None:
                    return self._note(self.placeholder_note, _id(name, found), CONFIG)
        return self._note(self.placeholder_note, self.token(anchor), "tokenizer")

    def config_token(self, name: str, text: str) -> int:
        """Return a token id of config.json, else that of the token `text`."""
        found = self.config.get(name)
        if found is not None:
            return self._note(name, _id(name, found), CONFIG)
        return self._note(name, self.token(text), "tokenizer")

    def _triple(self, name: str, default: Triple, inside: str) -> Triple:
        value, origin = self._first(name, default, ((name,), (inside, name)))
        numbers = (value,) * 3 if isinstance(value, int | float) else value
        if not isinstance(numbers, list | tuple) or len(numbers) != 3:
            raise ProcessorError(f"{name} of {origin} is not a list of three numbers")
        red, green, blue = (_finite(name, each, origin) for each in numbers)
        return self._note(name, (red, green, blue), origin)

    def _of_engine(self, name: str, default: Any, path: _Path) -> tuple[Any, str]:
        _, overrides = self._layers[0]
        for origin, place in ((OVERRIDES, (overrides, (name,))), (CONFIG, (self.config, path))):
            found = _at(place[0], place[1] or (name,))
            if found is not None:
                return found, origin
        return default, DEFAULT

    def _first(self, name: str, default: Any, paths: tuple[_Path, ...]) -> tuple[Any, str]:
        for origin, layer in self._layers:
            for path in paths or ((name,),):
                found = _at(layer, path)
                if found is not None:
                    return found, origin
        return default, DEFAULT

    def _note(self, name: str, value: _T, origin: str) -> _T:
        self._notes[name] = ProcessorValue(name, value, origin)
        return value


def _document(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    content = files.get(name)
    if content is None:
        return {}
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProcessorError(f"{name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ProcessorError(f"{name} is not a JSON object")
    return found


def _at(document: Mapping[str, Any], path: _Path) -> Any:
    found: Any = document
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def _shown(value: Any) -> str:
    """Return a value as an error tells it, cut short: files come from engines."""
    text = (
        repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    )
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"


def _whole(name: str, value: Any, origin: str, *, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ProcessorError(
            f"{name} of {origin} is {_shown(value)}, not a number from 1 to {most}"
        )
    return value


def _id(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= TOKEN_ID_MAX:
        raise ProcessorError(f"{name} of {CONFIG} is {_shown(value)}, not a token id")
    return value


def _finite(name: str, value: Any, origin: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ProcessorError(f"{name} of {origin} is {_shown(value)}, not a number")
    return float(value)
