"""Rule groups: the workers of a model whose files come to the same rules of pictures, and the group for a prompt. Pure.

Workers of one model share a tokenizer, but not always the files of the image processor: a server was started with
other ones, or an older one tells none. A prompt's places, tensors and identities follow from one set of rules, so each
prompt with pictures has one group, whose workers alone are handed its tensors; others may get its pictures by
reference, where they work on them by themselves. Where all workers agree, as nearly always, there is one group.

The group is drawn by the conversation's first picture, in proportion to the workers that each has: every node and
every turn of a chat draws the same one, which is where the caches are. From Thaler and Ravishankar, "Using Name-Based
Mappings to Increase Hit Rates" (1998), with the weights of Schindelhauer and Schomaker (2005).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from smg_node.core.generation.request import MediaPart
from smg_node.engines.engine import ModelCard
from smg_node.fleet.models.picture_rules import PictureRules
from smg_node.fleet.models.served_model import ServedModel
from smg_node.media.family import Family
from smg_node.prompts.clip_marks import ClipMark
from smg_node.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    from smg_node.media.families.checkpoint.processor_files import ProcessorValue
    from smg_node.media.video.clip_family import ClipFamily

SAME: Final[frozenset[str]] = frozenset({""})
"""Of workers that say nothing of files: they go by those of the others."""
_END_BYTES: Final = 256
"""The end of a source stands for it: hashing all of a data URL takes milliseconds."""
_SHOWN_MAX: Final = 8
_VALUE_CHARACTERS: Final = 40


class RuleGroup(msgspec.Struct, frozen=True):
    """Workers whose rules are the same. `files` stand for theirs (`MediaCard.rules`), `workers` is how many there are.

    `family` is None where this node does not know how their pictures are made; `why_not` then says why. `anchor` is
    what the template writes for a picture, "" where that is not known either. `rules` are all of theirs, `clips` the
    marks of videos and sound, `sees` whether pictures are seen at all.
    """

    family: Family | None
    anchor: str
    why_not: str
    files: frozenset[str]
    workers: int
    rules: tuple[PictureRules, ...] = ()
    clips: tuple[ClipMark, ...] = ()
    sees: bool = True

    @property
    def why_no_clips(self) -> str:
        """Why there are no tensors of videos, in words; "" where there are, or nobody has asked yet."""
        return self.rules[0].why_no_clips if self.rules else ""

    @property
    def name(self) -> str:
        """Return what stands for its rules, the same on every node."""
        return self.anchor if self.family is None else self.family.fingerprint


def rules_of(model: ServedModel, cards: Sequence[ModelCard]) -> Mapping[PictureRules, int]:
    """Return the different rules of workers with these cards that take pictures, and how many workers have each.

    Those of the model itself, for none, where there are no cards.
    """
    if not cards:
        return {} if model.pictures is None else {model.pictures: 0}
    found: dict[PictureRules, int] = {}
    for card in cards:
        rules = None if card.media is None else model.pictures_of(card)
        if rules is not None:
            found[rules] = found.get(rules, 0) + 1
    return found


def groups_of(found: Mapping[PictureRules, int], tokenizer: Tokenizer) -> Sequence[RuleGroup]:
    """Return the groups of workers with these rules, by name.

    Takes a while where rules have not been worked out (`PictureRules.known`), and belongs in a thread then.
    """
    groups: dict[str, RuleGroup] = {}
    # The same order on every node: those that most workers have go first.
    for rules, workers in sorted(found.items(), key=lambda one: (-one[1], one[0].digest)):
        family = rules.family(tokenizer)
        one = RuleGroup(
            family,
            rules.anchor,
            rules.why_not,
            SAME | {rules.digest},
            workers,
            (rules,),
            rules.clips,
            rules.sees,
        )
        known = groups.get(one.name)
        if known is not None:
            files, workers = known.files | one.files, known.workers + workers
            every = (*known.rules, rules)
            one = msgspec.structs.replace(known, files=files, workers=workers, rules=every)
        groups[one.name] = one
    if len(groups) == 1:
        return tuple(groups.values())
    return tuple([groups[name] for name in sorted(groups)])


class ClipMakers(msgspec.Struct, frozen=True):
    """Who makes the tensors of a prompt's videos, None for nobody, and the group of workers that they are for."""

    maker: "ClipFamily | None"
    group: RuleGroup


def clip_makers(group: RuleGroup, tokenizer: Tokenizer) -> ClipMakers:
    """Return what makes videos for workers of a group: for those whose rules of videos are those of the first that has
    such.

    Takes a while at first, and belongs in a thread.
    """
    makers = [(rules, rules.clip_family(tokenizer)) for rules in group.rules]
    maker = next((each for _, each in makers if each is not None), None)
    if maker is None:
        return ClipMakers(None, group)
    alike = [
        rules
        for rules, each in makers
        if each is not None and each.fingerprint == maker.fingerprint
    ]
    files = SAME.union([rules.digest for rules in alike])
    return ClipMakers(maker, msgspec.structs.replace(group, files=files, rules=tuple(alike)))


def group_for(
    groups: Sequence[RuleGroup], parts: Sequence[MediaPart], weight: Callable[[RuleGroup], int]
) -> RuleGroup:
    """Return the group for a prompt with these pictures; `weight` of a group that must not have it is 0.

    Where all weigh nothing it is the one with the most workers.
    """
    if len(groups) == 1:
        return groups[0]
    weights = [weight(each) for each in groups]
    if not any(weights):
        return max(groups, key=lambda each: each.workers)
    source = parts[0].source
    key = f"{len(source)} {source[-_END_BYTES:]}\0".encode()
    return max(zip(groups, weights, strict=True), key=lambda each: _score(key, *each))[0]


def values_of(family: Family | None) -> "Sequence[ProcessorValue]":
    """Return the numbers that pictures of a family are made by, and where each was found; none for no family."""
    if family is None:
        return ()
    # The registry was loaded to find it.
    from smg_node.media.families.registry import values_in_force

    return values_in_force(family)


def disagreement(groups: Sequence[RuleGroup]) -> str:
    """Return in words how the rules of several groups differ."""
    told = [
        {name: (value, origin) for name, value, origin in values_of(each.family)} for each in groups
    ]
    names = sorted({name for each in told for name in each})
    differing = [
        name for name in names if len({str(each.get(name, ("",))[0]) for each in told}) > 1
    ]
    parts = []
    for group, values in zip(groups, told, strict=True):
        said = ", ".join(
            f"{name} is {_shown(values[name][0])} ({values[name][1]})"
            if name in values
            else f"no {name}"
            for name in differing[:_SHOWN_MAX]
        )
        family = group.why_not if group.family is None else f"{group.family.name}: {said}"
        parts.append(f"{group.workers} of them: {family}")
    return "; ".join(parts)


def _score(key: bytes, group: RuleGroup, weight: int) -> float:
    """Return how well a group suits a conversation; the best one is drawn as often as its weight says."""
    if not weight:
        return -math.inf
    drawn = int.from_bytes(sha256(key + group.name.encode()).digest()[:8], "big")
    return -weight / math.log((drawn + 0.5) / 2**64)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= _VALUE_CHARACTERS else text[:_VALUE_CHARACTERS] + "…"
