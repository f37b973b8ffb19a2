"""A vocabulary a test can do in its head: id = byte, and three specials after them."""

from collections.abc import Sequence

from smg_node.core.generation.request import TokenIds, token_ids

EOS = 256
TURN = 257
VOCABULARY = 258
ALONE = (*map(chr, range(128)), *[None] * 128, "", "")


class BytewiseDetokenizer:
    """Bytes to text; never half a character."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, token_id: int) -> str:
        if token_id >= 256:
            return ""
        self._held += bytes([token_id])
        try:
            text = self._held.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return ""
            text = self._held.decode("utf-8", "replace")
        self._held = b""
        return text

    @property
    def alone(self) -> Sequence[str | None] | None:
        return None if self._held else ALONE

    def finish(self) -> str:
        text, self._held = self._held.decode("utf-8", "replace"), b""
        return text


class BytewiseTokenizer:
    """One token a byte."""

    digest = "0" * 64
    vocabulary = VOCABULARY
    special_ids = frozenset({EOS, TURN})
    bos: str | None = None
    eos: str | None = "<eos>"
    special_tokens = {"eos_token": "<eos>"}  # noqa: RUF012 - never changed
    eos_ids = frozenset({EOS})
    encoder = "bytewise"
    faster = None

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        return token_ids([*([TURN] if add_special_tokens else []), *text.encode()])

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        return bytes(item for item in ids if item < 256).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < 256 else b""

    def token_text(self, token_id: int) -> str:
        return self.token_bytes(token_id).decode("utf-8", "replace")

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> BytewiseDetokenizer:
        return BytewiseDetokenizer()
