"""Encoder selection: chooses, for each picture of a call, the worker that encodes it.

By default by consistent hashing of the picture's digest with bounded loads: an encoder keeps what it encoded, so the
same picture goes to the same one, as long as that is not full. A call takes encoders that hand over in the way that
its own worker takes pictures:

    room     a pair's prefill worker waits for its pictures (TokenSpeed); one that answers alone cannot
    cache    whoever works the prompt off finds them by their hashes (vLLM), made in the same way as its own

All encoders of one call are handed pictures that were made in one way: these are made once.
"""

from typing import Final

from msgspec.structs import replace

from smg_node.core.generation.request import token_ids
from smg_node.core.ports import Clock, Rng
from smg_node.engines.engine import ModelCard
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.encoding.encode_legs import EncodeLegs, EncodeParts
from smg_node.pipeline.placement.candidates import ChoiceSet
from smg_node.pipeline.placement.picker import Picker
from smg_node.pipeline.placement.placement_request import (
    ObserveEncode,
    Part,
    PlacementAttempt,
)
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.pair_bans import room_number

GROUP_LABEL: Final = "encode_group"
"""What encode workers have in common with those they encode for, where not all of a model can reach each other."""


class EncoderSelector:
    """Selects encoders for this node's calls."""

    def __init__(
        self,
        picker: Picker,
        *,
        clock: Clock,
        rng: Rng,
        observe: ObserveEncode,
    ) -> None:
        self._picker = picker
        self._rng = rng
        self._parts = EncodeParts(clock, observe)

    def legs(self, one: PlacementAttempt, worker: Worker, now_s: float) -> EncodeLegs | None:
        """Choose and reserve an encoder for each picture of a call whose prompt `worker` works off; None if none can be had."""
        able = self._found(one, worker)
        if able is None:
            return None
        holds: list[Reservation] = []
        try:
            for number, (digest, tokens) in enumerate(one.wish.encodable, 1):
                holds.append(self._chosen(one, able, number, digest, tokens, now_s))
        except BaseException:
            # Not a decision: whatever went wrong, nobody would count the others out.
            for hold in holds:
                hold.release(now_s)
            raise
        style = able.workers[0].encoding
        assert style is not None, "see `_able`"
        numbers = [self._number(hold.worker) for hold in holds]
        timeout_s = one.rule.encode.timeout_s
        return EncodeLegs(self._parts, style, holds, numbers, timeout_s=timeout_s)

    def _found(self, one: PlacementAttempt, worker: Worker) -> ChoiceSet | None:
        """Return those that can encode for `worker`, near ones first; None if there are none.

        One that failed the call before is asked again only where nobody else may encode.
        """
        stage, avoid = one.stages.encode, one.wish.avoid
        assert stage is not None, "somebody encodes"
        choosable = stage.choosable(one.rule.zone_spill)
        outs = [avoid.failed | avoid.gone]
        if avoid.failed and not one.rule.encode.fallback:
            outs.append(avoid.gone)
        for out in outs:
            for each in (choosable, stage.all if choosable is not stage.all else None):
                able = None if each is None else self._able(one, worker, each, out)
                if able is not None:
                    return able
        return None

    def _chosen(
        self,
        one: PlacementAttempt,
        able: ChoiceSet,
        number: int,
        digest: str,
        tokens: int,
        now_s: float,
    ) -> Reservation:
        wish, stage = one.wish, one.stages.encode
        assert stage is not None, "see `legs`"
        of_picture = replace(
            wish,
            ids=token_ids(),
            text="",
            prompt_tokens=tokens,
            key=digest,
            places=(),
            # It is this one's work alone, and that is its tokens.
            pictures=None,
            caches=None,
            note=f"picture {number} of {len(wish.encodable)}",
        )
        part = Part("encode", f"{one.model.name}/encode", one.rule.encode.policy, tokens)
        return self._picker.choose(
            one.model, of_picture, part, able, stage.dropped, one.began_s, now_s
        )

    def _able(
        self, one: PlacementAttempt, worker: Worker, choosable: ChoiceSet, out: frozenset[str]
    ) -> ChoiceSet | None:
        """Return those that can encode for `worker` and are not `out`; None if there are none."""
        encodes = one.wish.encodes
        largest = max([tokens for _, tokens in one.wish.encodable])
        places = [
            at
            for at, encoder in enumerate(choosable.workers)
            if encoder.id not in out
            and _encodes_for(encoder, worker)
            and _takes(encoder.card, largest)
            and (encodes is None or encodes(encoder))
        ]
        if places:
            made = _made(choosable.workers[places[0]].card)
            places = [at for at in places if _made(choosable.workers[at].card) == made]
        if not places:
            return None
        if len(places) == len(choosable.workers):
            return choosable
        return ChoiceSet([choosable.workers[at] for at in places], choosable.pool.only(places))

    def _number(self, encoder: Worker) -> int:
        """Return the number of a room, drawn: several nodes number rooms of one encoder."""
        pairing = encoder.pairing
        return 1 if pairing is None else room_number(self._rng, pairing.room_bits)


def _encodes_for(encoder: Worker, worker: Worker) -> bool:
    """Whether `encoder` can encode pictures of prompts that `worker` works off."""
    card, other = encoder.card, worker.card
    if card is None or other is None or card.contract is not other.contract:
        return False
    if encoder.labels.get(GROUP_LABEL, "") != worker.labels.get(GROUP_LABEL, ""):
        return False
    match encoder.encoding:
        case "room":
            return worker.role == "prefill"
        case "cache":
            return _made(card) == _made(other)
        case None:
            return False


def _takes(card: ModelCard | None, tokens: int) -> bool:
    """Whether an engine takes a picture of so many tokens."""
    most = None if card is None or card.media is None else card.media.tokens_max
    return most is None or tokens <= most


def _made(card: ModelCard | None) -> tuple[str, bool] | None:
    """Return how the values of pictures are made for an engine."""
    if card is None or card.media is None:
        return None
    return card.media.dtype, card.media.device_normalizes
