"""Bundle of tokenizer files that a simulated engine serves: its zip archive, end-of-text ids,
encode and decode.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from smg_chaos.engine.scripts.vocabulary import tiny_files

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PIECE_BYTES: Final = 64 * 1024  # what the real servicers send at a time

# The files real servicers put into the bundle, in their order; patterns come after the names.
_NAMES: Final = (
    "tokenizer.json",
    "tokenizer_config.json",
    "config.json",
    "generation_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "tiktoken.model",
    "chat_template.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
)
_PATTERNS: Final = ("*.tiktoken", "*.jinja", "*.model")


class BundleError(Exception):
    """A folder that holds no tokenizer this engine could use."""


@dataclass(frozen=True)
class Bundle:
    """Tokenizer files by name; everything else is derived and computed once."""

    files: Mapping[str, bytes]
    path: str
    """What the engine reports as its tokenizer's path."""

    @cached_property
    def archive(self) -> bytes:
        """The zip of the files; the same bytes every time."""
        return zipped(self.files)

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The reference tokenizer over tokenizer.json."""
        content = self.files.get("tokenizer.json")
        if content is None:
            raise BundleError("a simulated engine needs tokenizer.json to print text")
        from tokenizers import Tokenizer  # slow to import, and a command line's --help is not

        return Tokenizer.from_buffer(content)

    @cached_property
    def model_config(self) -> Mapping[str, Any]:
        """config.json, or nothing."""
        return self._json("config.json")

    def _json(self, name: str) -> Mapping[str, Any]:
        content = self.files.get(name)
        value = json.loads(content) if content else {}
        return value if isinstance(value, dict) else {}

    @cached_property
    def eos_ids(self) -> tuple[int, ...]:
        """The end-of-text ids of config.json: the ones most engines advertise."""
        return _ids(self.model_config.get("eos_token_id"))

    @cached_property
    def further_eos_ids(self) -> tuple[int, ...]:
        """End-of-text ids that only generation_config.json names."""
        more = _ids(self._json("generation_config.json").get("eos_token_id"))
        return tuple(token for token in more if token not in self.eos_ids)

    @cached_property
    def all_eos_ids(self) -> frozenset[int]:
        """Every end-of-text id."""
        return frozenset((*self.eos_ids, *self.further_eos_ids))

    @cached_property
    def placeholders(self) -> dict[str, int]:
        """The ids that stand for features in prompts, by modality: image, video, audio."""
        inner = self.model_config.get("thinker_config")
        places = (self.model_config, inner if isinstance(inner, dict) else {})
        found: dict[str, int] = {}
        for kind in ("image", "video", "audio"):
            for place in places:
                for name in (f"{kind}_token_id", f"{kind}_token_index"):
                    value = place.get(name)
                    if isinstance(value, int):
                        found.setdefault(kind, value)
        return found

    @property
    def placeholder(self) -> int | None:
        """The id that stands for a feature of a picture in prompts."""
        return self.placeholders.get("image")

    def named_id(self, name: str) -> int | None:
        """Return the token id that config.json has under a name, None for none."""
        value = self.model_config.get(name)
        return value if isinstance(value, int) else None

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without special tokens around it."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`; special tokens are left out."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    @cached_property
    def size(self) -> int:
        """One more than the largest id the tokenizer knows."""
        return 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values())


def _ids(value: object) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,)
    if isinstance(value, list):
        return tuple(token for token in value if isinstance(token, int))
    return ()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return the files as a deflated zip with fixed dates."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()


def pieces(archive: bytes) -> list[tuple[bytes, str]]:
    """Return the archive in 64 KiB pieces, each with the SHA-256 it carries (only the last one)."""
    digest = hashlib.sha256(archive).hexdigest()
    starts = range(0, len(archive), PIECE_BYTES)
    return [
        (archive[at : at + PIECE_BYTES], digest if at + PIECE_BYTES >= len(archive) else "")
        for at in starts
    ]


def tiny_bundle(
    model: str, *, vocabulary: int, context: int, vision: str = "", area_max: int = 0
) -> Bundle:
    """Return the built-in bundle, of a model that sees pictures if `vision` names a family; ValueError when
    `vocabulary` is too small for it.
    """
    files = tiny_files(vocabulary=vocabulary, context=context, vision=vision, area_max=area_max)
    return Bundle(files, f"/models/{model}")


def folder_bundle(folder: Path) -> Bundle:
    """Return the tokenizer files of a model folder; BundleError when there are none."""
    files = {name: (folder / name).read_bytes() for name in _NAMES if (folder / name).is_file()}
    for pattern in _PATTERNS:
        for found in sorted(folder.glob(pattern)):
            files.setdefault(found.name, found.read_bytes())
    if not files:
        raise BundleError(f"no tokenizer files in {folder}")
    return Bundle(files, str(folder))
