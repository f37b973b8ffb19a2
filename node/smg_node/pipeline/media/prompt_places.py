"""Prompt places: the places of media in a prompt: whether each has one, and what stands there for its features. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smg_node.core.errors import invalid
from smg_node.core.generation.request import MediaPart, TokenIds
from smg_node.fleet.models.picture_rules import TokenTexts
from smg_node.media.expand import PlacedPicture
from smg_node.media.family import PictureLayout, PicturePlan
from smg_node.media.video.clip import ClipPlan
from smg_node.pipeline.media.making.picture_making import PlannedPicture
from smg_node.prompts.media_forms import NOUNS, MediaForms

if TYPE_CHECKING:
    from smg_node.pipeline.media.media_ways import Maker


def check_places(
    ids: TokenIds, sent: Sequence[MediaPart], forms: MediaForms, tokens: TokenTexts
) -> None:
    """Raise INVALID_REQUEST where the prompt has more or fewer places than media of a kind, before any is fetched."""
    for kind in forms.kinds:
        anchor = tokens.token_id(forms.anchor_of(kind))
        parts = [part for part in sent if part.kind == kind]
        found = 0 if anchor is None else ids.count(anchor)
        if anchor is not None and found != len(parts):
            one, many = NOUNS[kind]
            raise invalid(
                f"the prompt has {found} places for {len(parts)} {many}: a text must not contain what stands for a"
                f" {one}, and the chat template has to show each",
                (parts or sent)[0].where,
            )


def placed_media(
    planned: Sequence[PlannedPicture], family: "Maker", tokens: TokenTexts
) -> list[PlacedPicture]:
    """Return what stands in the places of pictures or clips that were planned with the family, in their order.

    That of a long clip takes milliseconds: it is hundreds of texts.
    """
    found = []
    for each in planned:
        assert each.plan is not None, "it was planned with the family"
        layout = _layout(each.plan, family, tokens)
        found.append(PlacedPicture(layout, each.plan.tokens, each.digest, each.part.where))
    return found


def _layout(plan: PicturePlan | ClipPlan, family: "Maker", tokens: TokenTexts) -> PictureLayout:
    if family.modality == "image":
        assert isinstance(plan, PicturePlan)
        return family.layout(plan, tokens)
    assert isinstance(plan, ClipPlan)
    return family.layout(plan, tokens)
