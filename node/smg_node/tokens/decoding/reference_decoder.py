"""Reference decoder: token ids to text through the `tokenizers` library, for vocabularies that no
table describes.
"""

from collections.abc import Mapping, Sequence

import tokenizers

from smg_node.tokens.decoding.detokenizer import WindowDetokenizer
from smg_node.tokens.library_errors import is_foreign
from smg_node.tokens.tokenizer import Detokenizer


class ReferenceSpeller:
    """Asks `tokenizers` for every text. `pieces[id]` is None for an id that does not exist.

    Every id is tried once here, so a decoder that fails on its own vocabulary is known at load, by
    whatever it throws. One that fails later, on some sequence, prints that sequence as it is spelled.
    """

    def __init__(
        self,
        reference: tokenizers.Tokenizer,
        pieces: Sequence[str | None],
        *,
        added: Mapping[int, str],
        special_ids: frozenset[int],
    ) -> None:
        self._reference = reference
        self._pieces = pieces
        self._added = added
        self._special_ids = special_ids
        self._shown = View(self, hidden=frozenset())
        self._visible = View(self, hidden=special_ids)
        for token_id in filter(self.known, range(len(pieces))):
            self._reference.decode([token_id], skip_special_tokens=False)

    def known(self, token_id: int) -> bool:
        """Whether the vocabulary has this id."""
        return 0 <= token_id < len(self._pieces) and self._pieces[token_id] is not None

    def added_text(self, token_id: int) -> str | None:
        """Return the text of an added token, None for one of the model's own."""
        return self._added.get(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the UTF-8 of the token's text; the vocabulary defines no bytes below that."""
        return self.token_text(token_id).encode()

    def token_text(self, token_id: int) -> str:
        """Return one token as it looks inside a text; some decoders print nothing of one at its start."""
        if not self.known(token_id):
            return ""
        alone = self._shown.text([token_id])
        twice = self._shown.text([token_id, token_id])
        return twice[len(alone) :] if twice.startswith(alone) else alone

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids`; unknown ids print nothing."""
        hidden = self._special_ids if skip_special_tokens else frozenset()
        return self.text([one for one in ids if self.known(one) and one not in hidden])

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`, all of which are known, the special ones too."""
        if not ids:
            return ""  # Some decoders panic over nothing.
        try:
            return self._reference.decode(ids, skip_special_tokens=False)
        # Foreign code with a stranger's rules; a stream must not die of it.
        except BaseException as error:
            if not is_foreign(error):
                raise
        return "".join(self._pieces[token_id] or "" for token_id in ids)

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> Detokenizer:
        """Return a new machine for one choice."""
        return WindowDetokenizer(
            self._visible if skip_special_tokens else self._shown,
            prompt_tail,
            spaces_between_added=spaces_between_special_tokens,
        )


class View:
    """A speller without the hidden ids."""

    def __init__(self, speller: ReferenceSpeller, *, hidden: frozenset[int]) -> None:
        self._speller = speller
        self._hidden = hidden

    def prints(self, token_id: int) -> bool:
        """Whether the id is known and not hidden."""
        return token_id not in self._hidden and self._speller.known(token_id)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`, all of which print."""
        return self._speller.text(ids)

    def added_text(self, token_id: int) -> str | None:
        """Return the text of an added token, None for one of the model's own."""
        return self._speller.added_text(token_id)
