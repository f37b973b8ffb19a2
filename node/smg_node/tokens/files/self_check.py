"""Self-check: compares a fast encoder with the reference on probe texts, before it is trusted with
a vocabulary.

A fast encoder is only worth having if it is exact: one other id in a prompt, and the model reads
something else. So at load it must agree with the reference on texts made to tell tokenizers apart,
with and without the special tokens around them. It agrees on all, or it is not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import TokenIds
from smg_node.tokens.encoders import Encoder
from smg_node.tokens.files.probe_texts import probe_texts


@dataclass(frozen=True, slots=True)
class Expectation:
    """Ids by the reference: for each text without and with special tokens around it.

    None where it refuses the text: a vocabulary without a token for the unknown may do that.
    """

    texts: Sequence[str]
    plain: "Sequence[TokenIds | None]"
    wrapped: "Sequence[TokenIds | None]"


def expectation(reference: Encoder, added_tokens: Sequence[str]) -> Expectation:
    """Return what `reference` makes of the probe texts."""
    texts = probe_texts(added_tokens)
    return Expectation(
        texts=texts,
        plain=[_ids(reference, text, special=False) for text in texts],
        wrapped=[_ids(reference, text, special=True) for text in texts],
    )


def disagreement(encoder: Encoder, expected: Expectation) -> str | None:
    """Return a description of the first difference from what is expected, None if there is none."""
    for text, plain, wrapped in zip(expected.texts, expected.plain, expected.wrapped, strict=True):
        for special, ids in ((False, plain), (True, wrapped)):
            found = _ids(encoder, text, special=special)
            if found != ids:
                return f"other ids for the probe {text[:40]!r}: {_first_difference(found, ids)}"
    return None


def _ids(encoder: Encoder, text: str, *, special: bool) -> "TokenIds | None":
    try:
        return encoder.encode(text, add_special_tokens=special)
    except SmgError:
        return None


def _first_difference(found: "TokenIds | None", wanted: "TokenIds | None") -> str:
    if found is None or wanted is None:
        return "only one of the two encodes it"
    for at, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            return f"{one} where {other} was expected, at position {at}"
    return f"{len(found)} where {len(wanted)} were expected"
