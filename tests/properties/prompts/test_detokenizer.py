"""Whatever ids come, in whatever order: the streamed text is the reference decoder's text."""

import random
from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.tokens.decoding.detokenizer import REPLACEMENT, WindowDetokenizer
from smg_node.tokens.decoding.reference_decoder import ReferenceSpeller
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.models.sample_documents import documents
from support.models.vocabulary import (
    qwen,
    qwen_reference,
    qwen_tiktoken,
    small,
    small_reference,
)
from support.tools.example_counts import example_count

QWEN_IDS = 151_646
DOCUMENTS = list(documents(160, seed=11))


def streamed(
    tokenizer: LoadedTokenizer,
    ids: Sequence[int],
    *,
    skip: bool = False,
    tail: Sequence[int] = (),
    spaces: bool = True,
) -> list[str]:
    machine = tokenizer.detokenizer(
        prompt_tail=tail, skip_special_tokens=skip, spaces_between_special_tokens=spaces
    )
    return [*(machine.feed(token_id) for token_id in ids), machine.finish()]


def qwen_ids() -> st.SearchStrategy[list[int]]:
    # Ids below 256 are single bytes: the parts of which broken characters are made.
    one = st.one_of(
        st.integers(0, 255),
        st.integers(0, QWEN_IDS - 1),
        st.sampled_from([151_643, 151_644, 151_645, QWEN_IDS, 200_000]),
    )
    return st.lists(one, max_size=40)


@settings(deadline=None, max_examples=example_count(400))
@given(ids=qwen_ids(), skip=st.booleans(), tail=st.lists(st.integers(0, 255), max_size=8))
def test_any_ids_of_a_real_vocabulary_print_what_the_reference_prints(
    ids: list[int], skip: bool, tail: list[int]
) -> None:
    wanted = qwen_reference().decode(ids, skip_special_tokens=skip)
    assert "".join(streamed(qwen(), ids, skip=skip, tail=tail)) == wanted
    assert qwen().decode(ids, skip_special_tokens=skip) == wanted


@settings(deadline=None, max_examples=example_count(200))
@given(ids=qwen_ids(), skip=st.booleans())
def test_any_ids_of_a_ranks_file_print_the_bytes_that_the_file_says(
    ids: list[int], skip: bool
) -> None:
    # The extra tokens of the ranks file begin where the tokenizer.json ends.
    ids = [token_id for token_id in ids if token_id < QWEN_IDS]
    wanted = qwen_reference().decode(ids, skip_special_tokens=skip)
    assert "".join(streamed(qwen_tiktoken(), ids, skip=skip)) == wanted
    assert qwen_tiktoken().decode(ids, skip_special_tokens=skip) == wanted


@pytest.mark.parametrize("loaded", [qwen, qwen_tiktoken])
def test_documents_come_back_as_they_were_and_never_by_half_characters(
    loaded: "pytest.FixtureRequest",
) -> None:
    tokenizer: LoadedTokenizer = loaded()  # type: ignore[operator]  # a plain function
    for text in DOCUMENTS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        pieces = streamed(tokenizer, ids)
        # Composition (NFC) may have changed the text before it became ids; printing changes nothing.
        wanted = qwen_reference().decode(list(ids), skip_special_tokens=False)
        assert "".join(pieces) == wanted
        if REPLACEMENT not in wanted:
            assert not any(REPLACEMENT in piece for piece in pieces)
        for piece, token_id in zip(pieces, ids, strict=False):
            # At most three bytes of an unfinished character may wait for the next token.
            assert len(piece.encode()) >= len(tokenizer.token_bytes(token_id)) - 3


@settings(deadline=None, max_examples=example_count(300))
@given(data=st.data(), skip=st.booleans())
def test_a_cut_text_ends_in_at_most_one_broken_character(data: st.DataObject, skip: bool) -> None:
    text = data.draw(st.sampled_from(DOCUMENTS))
    ids = list(qwen().encode(text, add_special_tokens=False))
    cut = data.draw(st.integers(0, len(ids)))
    wanted = qwen_reference().decode(ids[:cut], skip_special_tokens=skip)
    assert "".join(streamed(qwen(), ids[:cut], skip=skip)) == wanted


def fallback_text(ids: Sequence[int]) -> str:
    """Return what byte fallback should print: characters stay, every other byte is U+FFFD."""
    reference = small_reference("llama2")
    parts = []
    for is_byte, run in groupby(ids, key=lambda token_id: 3 <= token_id < 259):
        if is_byte:
            broken = bytes(token_id - 3 for token_id in run)
            # `backslashreplace` gives four characters for each byte that is part of no character.
            marked = broken.replace(b"\\", b"/").decode("utf-8", "backslashreplace").split("\\x")
            parts.append(marked[0] + "".join(REPLACEMENT + part[2:] for part in marked[1:]))
        else:
            parts += [(reference.id_to_token(token_id) or "").replace("▁", " ") for token_id in run]
    text = "".join(parts)
    return text[1:] if text.startswith(" ") else text


llama_ids = st.lists(
    st.one_of(
        st.integers(3, 258).filter(lambda token_id: token_id != 3 + 0x5C),
        st.integers(0, 1500).filter(lambda token_id: token_id != 3 + 0x5C),
        st.sampled_from([259, 259, 0, 1, 2]),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=example_count(500))
@given(ids=llama_ids, skip=st.booleans())
def test_byte_fallback_prints_whole_characters_and_marks_every_broken_byte(
    ids: list[int], skip: bool
) -> None:
    shown = [token_id for token_id in ids if not (skip and token_id in (0, 1, 2))]
    assert "".join(streamed(small("llama2"), ids, skip=skip)) == fallback_text(shown)
    # The reference gives up whole runs; the unstreamed decoder does as it does.
    wanted = small_reference("llama2").decode(ids, skip_special_tokens=skip)
    assert small("llama2").decode(ids, skip_special_tokens=skip) == wanted


@settings(deadline=None, max_examples=example_count(300))
@given(text=st.text(max_size=60), cut=st.integers(0, 20), skip=st.booleans())
def test_byte_fallback_prints_a_text_as_the_reference_does_also_after_a_prompt(
    text: str, cut: int, skip: bool
) -> None:
    reference = small_reference("llama2")
    ids = list(small("llama2").encode(text, add_special_tokens=True))
    tail, rest = ids[:cut][-8:], ids[cut:]
    before = reference.decode(tail, skip_special_tokens=skip)
    whole = reference.decode(tail + rest, skip_special_tokens=skip)
    found = "".join(streamed(small("llama2"), rest, skip=skip, tail=tail))
    if REPLACEMENT not in before:
        assert whole.startswith(before)
        assert found == whole[len(before) :]


@settings(deadline=None, max_examples=example_count(300))
@given(data=st.data(), skip=st.booleans())
@pytest.mark.parametrize("family", ["unigram", "wordpiece"])
def test_any_ids_of_a_vocabulary_without_a_table_print_what_the_reference_prints(
    family: str, data: st.DataObject, skip: bool
) -> None:
    tokenizer = small(family)
    one = st.integers(0, tokenizer.vocabulary + 3) | st.sampled_from([0, 1, 2, 3])
    tail = data.draw(st.lists(one, max_size=8))
    ids = data.draw(st.lists(one, max_size=30))
    reference = small_reference(family)
    before = reference.decode(tail, skip_special_tokens=skip)
    whole = reference.decode(tail + ids, skip_special_tokens=skip)
    found = "".join(streamed(tokenizer, ids, skip=skip, tail=tail))
    assert whole.startswith(before)
    assert found == whole[len(before) :]
    assert tokenizer.decode(ids, skip_special_tokens=skip) == reference.decode(
        ids, skip_special_tokens=skip
    )


def test_the_window_prints_documents_of_table_vocabularies_as_well() -> None:
    """The general machine is exact wherever the text is, so no family depends on its table."""
    rng = random.Random(3)
    for reference, tokenizer in (
        (qwen_reference(), qwen()),
        (small_reference("llama2"), small("llama2")),
    ):
        pieces = [reference.id_to_token(token_id) for token_id in range(tokenizer.vocabulary)]
        speller = ReferenceSpeller(reference, pieces, added={}, special_ids=tokenizer.special_ids)
        for text in DOCUMENTS[:48]:
            ids = list(tokenizer.encode(text[:600], add_special_tokens=False))
            skip = rng.random() < 0.5
            machine = speller.detokenizer(
                prompt_tail=(), skip_special_tokens=skip, spaces_between_special_tokens=True
            )
            assert isinstance(machine, WindowDetokenizer)
            found = "".join([*map(machine.feed, ids), machine.finish()])
            assert found == reference.decode(ids, skip_special_tokens=skip)
