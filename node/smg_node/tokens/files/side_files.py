"""Side files of a tokenizer: reads roles of tokens, ends of text and added tokens from the JSON
files beside it. Pure.

Every model family spreads this over other files, and they are untrusted input: a field of the wrong
type is one clear error that names file and field; a field that is absent, null, or names a token
that the vocabulary does not have is simply not there.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.library_errors import unusable

CONFIG: Final = "tokenizer_config.json"
SPECIAL_MAP: Final = "special_tokens_map.json"
MODEL_CONFIG: Final = "config.json"
GENERATION_CONFIG: Final = "generation_config.json"

EOS_IDS_MAX: Final = 4096
"""More end-of-text ids than any vocabulary has control tokens: such a list is a mistake."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token beside the model's own vocabulary, as tokenizer_config.json describes it."""

    token_id: int
    content: str
    special: bool
    flags: Mapping[str, bool]
    """`single_word`, `lstrip`, `rstrip`, `normalized`."""


@dataclass(frozen=True, slots=True)
class SideFiles:
    """The parsed files; {} for one that is not there."""

    config: Mapping[str, Any]
    special_map: Mapping[str, Any]
    model: Mapping[str, Any]
    generation: Mapping[str, Any]

    def roles(self) -> dict[str, str]:
        """Return role to token text: `bos_token`, `eos_token`, … and named extras."""
        found: dict[str, str] = {}
        for name, source in ((SPECIAL_MAP, self.special_map), (CONFIG, self.config)):
            for key, value in _role_fields(name, source):
                text = _token_text(name, key, value)
                if text is not None:
                    found[key] = text
        return found

    def eos_ids(self, id_of: Callable[[str], int | None]) -> frozenset[int]:
        """Return every id that any file calls the end of a text. `id_of` looks a token up."""
        found: set[int] = set()
        eos = self.roles().get("eos_token")
        known = id_of(eos) if eos is not None else None
        if known is not None:
            found.add(known)
        text_config = _object(MODEL_CONFIG, "text_config", self.model.get("text_config"))
        for name, key, source in (
            (MODEL_CONFIG, "eos_token_id", self.model),
            (MODEL_CONFIG, "text_config.eos_token_id", text_config),
            (GENERATION_CONFIG, "eos_token_id", self.generation),
        ):
            found.update(_ids(name, key, source.get("eos_token_id")))
        return frozenset(found)

    def added_tokens(self) -> list[AddedToken]:
        """Return `added_tokens_decoder` of tokenizer_config.json, by id."""
        table = _object(CONFIG, "added_tokens_decoder", self.config.get("added_tokens_decoder"))
        return sorted(
            (_added(key, value) for key, value in table.items()), key=lambda t: t.token_id
        )

    def flag(self, key: str) -> bool | None:
        """Return a boolean of tokenizer_config.json, None if it is not there."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, bool):
            raise _wrong(CONFIG, key, "true or false", value)
        return value

    def word(self, name: str, key: str) -> str:
        """Return a string of `name`, "" if it is not there."""
        source = self.model if name == MODEL_CONFIG else self.config
        value = source.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise _wrong(name, key, "a string", value)
        return value


def read_side_files(bundle: TokenizerBundle) -> SideFiles:
    """Parse the side files of `bundle`; an SmgError names the file that is not a JSON object."""
    return SideFiles(
        config=_read(bundle, CONFIG),
        special_map=_read(bundle, SPECIAL_MAP),
        model=_read(bundle, MODEL_CONFIG),
        generation=_read(bundle, GENERATION_CONFIG),
    )


def _read(bundle: TokenizerBundle, name: str) -> Mapping[str, Any]:
    content = bundle.files.get(name)
    if content is None:
        return {}
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unusable(f"{name} of {bundle.origin} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise unusable(f"{name} of {bundle.origin} is not a JSON object")
    return value


def _role_fields(name: str, source: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    # `add_bos_token` and the like are switches, not roles.
    for key, value in source.items():
        if key.endswith("_token") and not isinstance(value, bool):
            yield key, value
    extra = source.get("extra_special_tokens")
    if extra is None or isinstance(extra, list):
        return  # Newer files list them without names here: nothing a template could ask for.
    yield from _object(name, "extra_special_tokens", extra).items()


def _token_text(name: str, key: str, value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    if value is not None and not isinstance(value, str):
        raise _wrong(name, key, "a token", value)
    return value


def _ids(name: str, key: str, value: object) -> list[int]:
    values = value if isinstance(value, list) else [value]
    if len(values) > EOS_IDS_MAX:
        raise unusable(f"{name}: {key} lists {len(values)} ids; {EOS_IDS_MAX} are the most")
    found = []
    for item in values:
        if item is None:
            continue
        if isinstance(item, bool) or not isinstance(item, int):
            raise _wrong(name, key, "an id or a list of ids", item)
        if item >= 0:  # -1 is how some files say: none
            found.append(item)
    return found


def _object(name: str, key: str, value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(name, key, "an object", value)
    return value


def _added(key: str, value: object) -> AddedToken:
    where = f"added_tokens_decoder.{key}"
    fields = _object(CONFIG, where, value)
    content = fields.get("content")
    if not isinstance(content, str) or not content:
        raise _wrong(CONFIG, f"{where}.content", "a token", content)
    if not (key.isascii() and key.isdigit() and len(key) <= 10):
        raise _wrong(CONFIG, where, "named by an id", key)
    flags = {
        name: fields.get(name) is True for name in ("single_word", "lstrip", "rstrip", "normalized")
    }
    return AddedToken(int(key), content, fields.get("special") is True, flags)


def _wrong(name: str, key: str, wanted: str, value: object) -> SmgError:
    return unusable(f"{name}: {key} must be {wanted}, not {str(value)[:80]!r}")
