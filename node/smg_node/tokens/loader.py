"""Loader of tokenizers: makes a tokenizer from a bundle of files, whatever their format."""

from collections.abc import Callable

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files.huggingface import EncoderChoice, Proofs, load_huggingface
from smg_node.tokens.files.tiktoken import is_ranks_file, load_tiktoken
from smg_node.tokens.files.tokenizer_json import NAME
from smg_node.tokens.library_errors import unusable
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer


def _leave() -> None:
    """Leave the heap as it is."""


def load(
    bundle: TokenizerBundle,
    *,
    encoder: EncoderChoice = "auto",
    trim: Callable[[], None] = _leave,
    proofs: Proofs | None = None,
) -> LoadedTokenizer:
    """Return the tokenizer of `bundle`; takes up to seconds, so it belongs in a thread.

    A tokenizer.json comes before a *.tiktoken file. With `encoder="tokenizers"` the reference library
    encodes; with `auto` a faster one does where it is proven exact. Every failure is an SmgError:
    `tokenizer_invalid`, or `tiktoken_missing` for a *.tiktoken file without the extra. `trim` is called where
    much memory has just become free; `proofs` are where what was found out is looked up and kept.
    """
    if NAME in bundle.files:
        return load_huggingface(bundle, encoder=encoder, trim=trim, proofs=proofs)
    ranks = sorted(name for name in bundle.files if is_ranks_file(name))
    if not ranks:
        names = ", ".join(sorted(bundle.files)[:8]) or "nothing"
        raise unusable(f"{bundle.origin} has neither {NAME} nor a *.tiktoken file; it has {names}")
    return load_tiktoken(bundle, ranks[0])
