"""The tokenizer of our tiny models: a small byte-level BPE, the same on every machine."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT_END: Final = "<|endoftext|>"
TURN_END: Final = "<|im_end|>"
SPECIAL: Final = (TEXT_END, "<|im_start|>", TURN_END)
MARKERS: Final = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""Tokens that are not special: they stay visible when special tokens are skipped."""
MARKED: Final = (*SPECIAL, *MARKERS)
PROMPT_END: Final = "<|im_start|>assistant\n"
"""What every prompt of our chat template ends in."""


def trained_tokenizer() -> Tokenizer:
    """Return the tokenizer all our models share, before a script has added to it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(t, special=t in SPECIAL, normalized=False) for t in MARKED],
    )
    corpus = Path(__file__).with_name("tiny_corpus.txt").read_text(encoding="utf-8")
    tokenizer.train_from_iterator(corpus.splitlines(keepends=True), trainer)
    shape = json.loads(tokenizer.to_str())
    for token in shape["added_tokens"]:  # the trainer makes all of them special
        token["special"] = token["content"] in SPECIAL
    return Tokenizer.from_str(json.dumps(shape))


def spell(tokenizer: Tokenizer, script: bytes) -> list[bytes]:
    """Return pieces that make up `script`, none of them twice, tokens of the text where possible.

    ValueError where there is no way, as for a text of one letter said twice.
    """
    natural = [token_bytes(tokenizer, i) for i in tokenizer.encode(script.decode("utf-8")).ids]
    assert b"".join(natural) == script
    markers = {marker.encode() for marker in MARKERS}
    # The token that every prompt ends in comes before the script, so it cannot be in it.
    taken = {token_bytes(tokenizer, tokenizer.encode(PROMPT_END).ids[-1])}
    pieces: list[bytes] = []
    open_piece = b""
    for token in natural:
        if open_piece and token in markers - taken and pieces and pieces[-1] not in markers:
            _take_back(pieces, open_piece, taken)  # so that the marker stays a token
            open_piece = b""
        open_piece += token
        if open_piece not in taken:
            taken.add(open_piece)
            pieces.append(open_piece)
            open_piece = b""
    if open_piece:
        _take_back(pieces, open_piece, taken)
    if not pieces:
        raise ValueError("a script must say something")
    return pieces


def _take_back(pieces: list[bytes], end: bytes, taken: set[bytes]) -> None:
    """Join `end`, which was said before, with as many of the last pieces as make it a new one."""
    while end in taken:
        if not pieces:
            raise ValueError("the script cannot be said without saying a token twice")
        end = pieces.pop() + end
    taken.add(end)
    pieces.append(end)


def with_pieces(tokenizer: Tokenizer, pieces: Sequence[bytes]) -> tuple[Tokenizer, list[int]]:
    """Return a tokenizer that has a token for each piece, and their ids; all other ids stay."""
    shape = json.loads(tokenizer.to_str())
    vocabulary: dict[str, int] = shape["model"]["vocab"]
    markers = {marker.encode(): marker for marker in MARKERS}
    names = [markers.get(piece) or token_name(piece) for piece in pieces]
    ids = [vocabulary.setdefault(name, len(vocabulary)) for name in names]
    return Tokenizer.from_str(json.dumps(shape)), ids


def byte_names() -> dict[int, str]:
    """Return the printable character that byte-level BPE writes for each byte, after GPT-2.

    Printable bytes of Latin-1 stand for themselves, the others for the code points from 256 on.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    odd = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + k) for k, byte in enumerate(odd)}


def token_name(raw: bytes) -> str:
    """Return the name of a token that stands for `raw`."""
    names = byte_names()
    return "".join(names[byte] for byte in raw)


def token_bytes(tokenizer: Tokenizer, token_id: int) -> bytes:
    """Return the bytes that a token stands for."""
    name = tokenizer.id_to_token(token_id)
    assert name is not None
    if name in MARKED:
        return name.encode()
    bytes_by_name = {name: byte for byte, name in byte_names().items()}
    return bytes(bytes_by_name[character] for character in name)


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a token that the tokenizer must have."""
    found = tokenizer.token_to_id(token)
    assert found is not None, token
    return int(found)
