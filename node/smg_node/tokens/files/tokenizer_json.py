"""tokenizer.json reader: removes truncation and padding, and completes the file from the side
files. Pure.

Truncation and padding are taken out: they silently change ids, and length is ours to limit. The other
files of a model may add to what tokenizer.json says; the training libraries do that in code, here the
file itself is completed, so that the reference and a fast encoder agree on it by construction. The
vocabulary, nearly all of its bytes, is passed on unread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files.side_files import AddedToken
from smg_node.tokens.library_errors import unusable

NAME: Final = "tokenizer.json"
VOCABULARY_MAX: Final = 1 << 21
"""Eight times the largest vocabulary in use; a file that names larger ids would cost gigabytes."""

_NULL: Final = msgspec.Raw(b"null")


class _Model(msgspec.Struct):
    """The little that is read of the model section."""

    dropout: float | None = None
    continuing_subword_prefix: str | None = None
    merges: msgspec.Raw = msgspec.Raw(b"[]")


@dataclass(frozen=True, slots=True)
class Definition:
    """A readable tokenizer.json, its sections still as they were written."""

    name: str
    """Which file of which bundle this is, for errors."""
    sections: Mapping[str, msgspec.Raw]
    added: Sequence[Mapping[str, Any]]
    decoder: object
    looks_at_start: bool
    """Whether the start of a text is split differently from what comes later."""
    dropout: bool
    """Whether the same text may become different ids."""

    def content(self) -> bytes:
        """Return the finished file."""
        return msgspec.json.encode(self.sections)

    def brief(self) -> bytes:
        """Return the finished file with each merge as one text, which the fast encoder reads in three quarters of the time.

        As it is where a merge has a space in one of its halves, for which the longer form was made.
        """
        try:
            model = msgspec.json.decode(self.sections["model"], type=dict[str, msgspec.Raw])
            merges = msgspec.json.decode(model["merges"], type=list[tuple[str, str]])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError):
            # No pairs: it is brief already, or of another kind.
            return self.content()
        if any(" " in left or " " in right for left, right in merges):
            return self.content()
        texts = msgspec.json.encode([f"{left} {right}" for left, right in merges])
        shorter = msgspec.json.encode({**model, "merges": msgspec.Raw(texts)})
        return msgspec.json.encode({**self.sections, "model": msgspec.Raw(shorter)})

    def changed(self, since: "Definition") -> Mapping[str, bytes]:
        """Return the sections that are not what they are in `since`, as JSON."""
        return {
            name: bytes(section)
            for name, section in self.sections.items()
            if section is not since.sections.get(name)
        }

    def with_sections(self, sections: Mapping[str, bytes]) -> "Definition":
        """Return the definition with these sections, as `changed` gave them; only good to be encoded with."""
        raw = {name: msgspec.Raw(section) for name, section in sections.items()}
        return replace(self, sections={**self.sections, **raw})

    def missing(self, tokens: Sequence[AddedToken]) -> list[AddedToken]:
        """Return those of `tokens` that the file does not have among its added tokens."""
        present = {token.get("content") for token in self.added}
        return [token for token in tokens if token.content not in present]

    def with_added(self, tokens: Sequence[AddedToken]) -> "Definition":
        """Return the definition with `tokens` added."""
        entries = [
            {"id": token.token_id, "content": token.content, "special": token.special}
            | dict(token.flags)
            for token in tokens
        ]
        added = [*self.added, *entries]
        return replace(self, added=added, sections=self._with("added_tokens", added))

    def with_around(self, before: Mapping[str, int], after: Mapping[str, int]) -> "Definition":
        """Return the definition with exactly these tokens before and after a text."""
        single = [
            *({"SpecialToken": {"id": token, "type_id": 0}} for token in before),
            {"Sequence": {"id": "A", "type_id": 0}},
            *({"SpecialToken": {"id": token, "type_id": 0}} for token in after),
        ]
        processor = {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [token_id], "tokens": [token]}
                for token, token_id in {**before, **after}.items()
            },
        }
        return replace(self, sections=self._with("post_processor", processor))

    def _with(self, name: str, section: object) -> Mapping[str, msgspec.Raw]:
        return {**self.sections, name: msgspec.Raw(msgspec.json.encode(section))}


def read_definition(bundle: TokenizerBundle) -> Definition:
    """Return the tokenizer.json of `bundle` without truncation and padding."""
    name = f"{NAME} of {bundle.origin}"
    try:
        sections = msgspec.json.decode(bundle.files[NAME], type=dict[str, msgspec.Raw])
        model = msgspec.json.decode(sections.get("model", _NULL), type=_Model)
        added = msgspec.json.decode(
            sections.get("added_tokens", _NULL), type=list[dict[str, Any]] | None
        )
        _check_merges(model, name)
        _check_ids(added or [], name)
        return Definition(
            name=name,
            sections={**sections, "truncation": _NULL, "padding": _NULL},
            added=added or [],
            decoder=_plain(sections, "decoder"),
            looks_at_start=_looks_at_start(_plain(sections, "pre_tokenizer")),
            dropout=bool(model.dropout),
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise unusable(f"{name} cannot be read: {error}") from error


def _check_merges(model: _Model, name: str) -> None:
    """Refuse merges without the prefix that the file says continued words have.

    The library takes that many bytes off them without looking, and ends the whole process.
    """
    prefix = model.continuing_subword_prefix
    if not prefix:
        return
    for merge in msgspec.json.decode(model.merges, type=list[str | tuple[str, str]]):
        right = merge.rpartition(" ")[2] if isinstance(merge, str) else merge[1]
        if not right.startswith(prefix):
            raise unusable(f"{name}: its merge {merge!r} goes on without the prefix {prefix!r}")


def _check_ids(added: Sequence[Mapping[str, Any]], name: str) -> None:
    """Refuse ids beyond any vocabulary: the fast encoder makes room for every id below them."""
    for token in added:
        token_id = token.get("id")
        if not isinstance(token_id, int) or not 0 <= token_id < VOCABULARY_MAX:
            raise unusable(
                f"{name}: its added token {str(token.get('content'))[:80]!r} has the id"
                f" {str(token_id)[:20]}; 0 to {VOCABULARY_MAX - 1} are possible"
            )


def _plain(sections: Mapping[str, msgspec.Raw], name: str) -> object:
    return msgspec.json.decode(sections.get(name, _NULL))


def _looks_at_start(pre_tokenizer: object) -> bool:
    if not isinstance(pre_tokenizer, dict):
        return False
    inner = pre_tokenizer.get("pretokenizers")
    if isinstance(inner, list):
        return any(_looks_at_start(step) for step in inner)
    return pre_tokenizer.get("prepend_scheme") == "first"
