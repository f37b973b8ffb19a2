"""Expansion of prompts that a real tokenizer has encoded: typed placeholders, and newlines that belong together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import token_ids
from smg_node.media.expand import PlacedPicture, expand
from smg_node.media.families.registry import UnknownFamily
from smg_node.media.family import TokenLookup
from support.media.checkpoints import CHECKPOINTS, family, found

MARKS = ("<start_of_image>", "<end_of_image>", "<image_soft_token>", "<|image_pad|>")
LETTERS = "abc "


class RealTokens(TokenLookup):
    """A tokenizer, as families ask it."""

    def __init__(self) -> None:
        lines = ["\n" * count for count in range(1, 5)]
        texts = [*LETTERS, *lines]
        merges = [("\n", "\n"), ("\n\n", "\n\n"), ("\n\n", "\n")]
        self.tokenizer = Tokenizer(BPE({text: at for at, text in enumerate(texts)}, merges))
        self.tokenizer.add_special_tokens([AddedToken(mark, normalized=False) for mark in MARKS])

    def token_id(self, text: str) -> int | None:
        found_id: int | None = self.tokenizer.token_to_id(text)
        return found_id

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


TOKENS = RealTokens()


def placed(name: str, count: int) -> tuple[int, list[PlacedPicture]]:
    made = family(name)
    if name == "gemma3":
        config = {**CHECKPOINTS[name]["config.json"], "mm_tokens_per_image": 3}
        config["image_token_index"] = TOKENS.token_id("<image_soft_token>")
        vocabulary = {mark: TOKENS.encode(mark)[0] for mark in MARKS}
        lines = {"\n" * n: TOKENS.encode("\n" * n)[0] for n in range(1, 5)}
        files = {**CHECKPOINTS[name], "config.json": config}
        other = found(name, files, tokens={**vocabulary, **lines})
        assert other is not None
        assert not isinstance(other, UnknownFamily)
        made = other
    plan = made.plan(64, 64)
    pictures = [
        PlacedPicture(
            layout=made.layout(plan, TOKENS),
            tokens=plan.tokens,
            digest=f"{at:064x}",
            where=f"messages[0].content[{at}]",
        )
        for at in range(count)
    ]
    anchor = TOKENS.token_id(made.anchor)
    assert anchor is not None
    return anchor, pictures


def test_a_placeholder_that_a_user_typed_is_refused() -> None:
    anchor, pictures = placed("qwen3_vl", 1)
    typed = TOKENS.encode("a <|image_pad|> b c<|image_pad|>")
    assert typed.count(anchor) == 2
    with pytest.raises(SmgError) as refused:
        expand(token_ids(typed), anchor, pictures)
    assert refused.value.status == 400
    assert refused.value.where == "messages[0].content[0]"


def test_a_placeholder_in_pieces_is_text() -> None:
    anchor, pictures = placed("gemma3", 1)
    ids = TOKENS.encode("a <start_of_imag <start_of_image>")
    expanded = expand(token_ids(ids), anchor, pictures)
    assert len(expanded.ranges) == 1


@given(
    texts=st.lists(st.text("ab\n", max_size=4), min_size=1, max_size=5).filter(
        # More than four newlines together are beyond the tokens that are joined, by engines too.
        lambda texts: (
            all(text.count("\n") <= 1 for text in texts)
            and all(text.strip("\n") for text in texts[1:-1])
        )
    )
)
def test_newlines_around_pictures_are_those_of_the_tokenizer(texts: list[str]) -> None:
    anchor, pictures = placed("gemma3", len(texts) - 1)
    prompt = "<start_of_image>".join(texts)
    written = "\n\n<start_of_image>" + "<image_soft_token>" * 3 + "<end_of_image>\n\n"
    expanded = expand(token_ids(TOKENS.encode(prompt)), anchor, pictures)
    assert list(expanded.ids) == TOKENS.encode(written.join(texts))
    soft = TOKENS.token_id("<image_soft_token>")
    for each in expanded.ranges:
        inside = list(expanded.ids[each.offset : each.offset + each.length])
        assert inside[1:-1] == [soft] * 3
