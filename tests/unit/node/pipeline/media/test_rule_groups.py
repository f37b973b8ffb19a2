"""Groups of workers by the numbers that their files come to, and which group a conversation's pictures go to."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from smg_node.core.generation.request import MediaPart
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.engine import MediaCard, ModelCard
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.picture_rules import RULES_MAX, RuleBook, picture_rules
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.media.rule_groups import (
    RuleGroup,
    disagreement,
    group_for,
    groups_of,
    rules_of,
)
from smg_node.tokens.tokenizer import Tokenizer
from support.engines.fake_engine import card
from support.media.checkpoints import CHECKPOINTS, TOKENS, encoded
from support.models.bytewise_tokenizer import BytewiseTokenizer


class Named(BytewiseTokenizer):
    """A vocabulary with the tokens of a family."""

    vocabulary = 200_000

    def encode(self, text: str, *, add_special_tokens: bool) -> Any:
        known = TOKENS["qwen3_vl"]
        if text in known:
            return [known[text]]
        return super().encode(text, add_special_tokens=add_special_tokens)

    def token_text(self, token_id: int) -> str:
        named = {number: text for text, number in TOKENS["qwen3_vl"].items()}
        return named.get(token_id) or super().token_text(token_id)


TOKENIZER: Tokenizer = Named()
SEES = card(media=MediaCard(frozenset({"tensors"})))


def bundle(max_pixels: int | None = None, **more: object) -> TokenizerBundle:
    """Return a checkpoint's files, with another bound or with words that change nothing."""
    files = dict(encoded(CHECKPOINTS["qwen3_vl"]))
    if max_pixels is not None or more:
        said = json.loads(files["preprocessor_config.json"]) | more
        if max_pixels is not None:
            said["max_pixels"] = max_pixels
        files["preprocessor_config.json"] = json.dumps(said).encode()
    return TokenizerBundle(files, "d", "a test")


def model(overrides: str | None = None) -> ServedModel:
    nothing: Any = None
    settings = ModelSettings(media_processor=overrides)
    return ServedModel(
        "eyes", 0, TOKENIZER, nothing, nothing, nothing, nothing, settings, "digest", None
    )


def cards(served: ServedModel, *bundles: TokenizerBundle) -> list[ModelCard]:
    return [served.note(SEES, each) for each in bundles]


def test_workers_with_equal_files_share_rules_that_are_worked_out_once() -> None:
    served = model()
    noted = cards(served, bundle(), bundle())
    assert noted[0].media == noted[1].media
    found = rules_of(served, noted)
    assert list(found.values()) == [2]
    (group,) = groups_of(found, TOKENIZER)
    assert group.workers == 2
    assert group.files == frozenset({"", *(each.digest for each in found)})
    assert group.family is next(iter(found)).family(TOKENIZER)


def test_workers_whose_files_differ_in_words_only_are_one_group() -> None:
    served = model()
    noted = cards(served, bundle(), bundle(processor_class="AnotherName"), bundle(500_000))
    assert len({each.media.rules for each in noted if each.media}) == 3
    groups = groups_of(rules_of(served, noted), TOKENIZER)
    assert sorted(each.workers for each in groups) == [1, 2]
    alike = max(groups, key=lambda each: each.workers)
    media = [each.media for each in noted if each.media is not None]
    assert [each.rules in alike.files for each in media] == [True, True, False]


def test_the_operators_numbers_make_all_workers_equal_again() -> None:
    served = model('{"max_pixels": 1003520}')
    noted = cards(served, bundle(), bundle(500_000))
    (group,) = groups_of(rules_of(served, noted), TOKENIZER)
    assert group.workers == 2
    assert all(each.media is not None and each.media.rules in group.files for each in noted)


def test_a_worker_without_files_is_of_another_group_where_defaults_differ() -> None:
    served = model()
    bare = TokenizerBundle({"config.json": bundle().files["config.json"]}, "d", "a test")
    groups = groups_of(rules_of(served, cards(served, bundle(300_000), bare)), TOKENIZER)
    assert len(groups) == 2
    said = disagreement(groups)
    assert "max_pixels is 300000 (preprocessor_config.json)" in said
    assert "(family default)" in said


def test_rules_are_the_models_own_where_no_worker_is_there_or_says_anything() -> None:
    served = model()
    assert rules_of(served, []) == {}
    (noted,) = cards(served, bundle())
    assert list(rules_of(served, []).values()) == [0]
    assert list(rules_of(served, [noted, SEES]).values()) == [2]
    assert rules_of(served, [card()]) == {}


def test_a_worker_of_text_is_noted_nothing_of() -> None:
    served = model()
    assert served.note(card(), bundle()) == card()
    text = TokenizerBundle({"config.json": b'{"model_type": "llama"}'}, "d", "a test")
    assert served.note(SEES, text) is SEES
    assert served.rules is None
    assert served.pictures is None


def test_a_worker_whose_files_changed_goes_by_the_new_ones() -> None:
    served = model()
    before, after = cards(served, bundle(500_000), bundle(700_000))
    assert served.pictures is served.pictures_of(after)
    assert served.pictures_of(before) is not served.pictures_of(after)


def test_as_many_different_files_are_kept_as_the_bound_says() -> None:
    book = RuleBook()
    made = [picture_rules(bundle(100_000 + at)) for at in range(RULES_MAX + 1)]
    first = made[0]
    assert first is not None
    for each in made:
        assert each is not None
        assert book.keep(each) is each
        assert book.of(first.digest) is first, "what is asked for stays"
    second = made[1]
    assert second is not None
    assert book.of(second.digest) is None


# ── The group of a prompt ────────────────────────────────────────────────────


def picture(source: str) -> list[MediaPart]:
    return [MediaPart("image", source, "messages[0].content[0]")]


def two_groups() -> list[RuleGroup]:
    return [RuleGroup(None, name, "", frozenset({name}), 1) for name in ("a", "b")]


def test_a_conversation_draws_the_same_group_at_each_turn_and_node() -> None:
    groups = two_groups()
    for at in range(50):
        parts = picture(f"https://x/{at}")
        chosen = group_for(groups, parts, lambda _: 1)
        assert group_for(groups[::-1], [*parts, *picture("https://x/later")], lambda _: 1) == chosen


def test_groups_are_drawn_as_often_as_they_weigh_and_few_move_when_one_grows() -> None:
    groups = two_groups()
    weights = {"a": 1, "b": 3}
    sources = [picture(f"https://x/{at}") for at in range(2_000)]
    before = [group_for(groups, each, lambda one: weights[one.name]).name for each in sources]
    counted = Counter(before)
    assert 0.21 < counted["a"] / len(sources) < 0.29
    weights["a"] = 2
    after = [group_for(groups, each, lambda one: weights[one.name]).name for each in sources]
    assert all(new == "a" for old, new in zip(before, after, strict=True) if old != new)


@pytest.mark.parametrize("at", range(20))
def test_a_group_that_weighs_nothing_gets_nothing_while_another_one_can(at: int) -> None:
    groups = two_groups()
    parts = picture(f"https://x/{at}")
    assert group_for(groups, parts, lambda one: int(one.name == "b")).name == "b"


def test_where_nobody_can_the_largest_group_is_told_of() -> None:
    small, large = two_groups()
    large = replace_workers(large, 5)
    assert group_for([small, large], picture("https://x/1"), lambda _: 0) == large


def replace_workers(group: RuleGroup, workers: int) -> RuleGroup:
    return RuleGroup(group.family, group.anchor, group.why_not, group.files, workers)


def test_a_card_with_its_rules_says_the_same_of_the_engine() -> None:
    served = model()
    (noted,) = cards(served, bundle())
    assert noted.media is not None
    assert SEES.media is not None
    assert noted.media.told == SEES.media.told
    assert replace(noted, media=SEES.media) == SEES
