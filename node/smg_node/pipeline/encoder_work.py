"""Encoder work: what a prompt's pictures cost at each worker beside its tokens; loaded with the first picture.

An encoder works on a picture only where the prefix cache does not have it. Its tokens are counted in as so many prompt
tokens as the worker would work off meanwhile: so this node, its peers and whoever looks at the load see the work that
waits, as for all other prompts.
"""

from collections.abc import Sequence

import msgspec

from smg_node.fleet.load.encoder_rate import encoder_rates, note_encoded
from smg_node.fleet.workers.worker import Worker
from smg_node.routing.policy import PromptPictures


class EncoderWork(msgspec.Struct, eq=False, gc=False):
    """Pictures of one call at its worker: `rate` is what its encoder was believed to do a second then."""

    pictures: PromptPictures
    rate: float

    def as_prompt(self, worker: Worker, overlap: float) -> int:
        """Return how many prompt tokens take as long there as the pictures that are not among the first `overlap` ids."""
        return round(self.pictures.uncached(overlap) * worker.load.prefill_rate / self.rate)

    def spoke(
        self, worker: Worker, computed: int, cached: int, seconds: float, now_s: float
    ) -> None:
        """Learn from a first token that came after `seconds`, in which `computed` tokens of prompts were worked off.

        `cached` is how many ids of the prompt the engine had.
        """
        encoded = self.pictures.uncached(cached)
        left_s = seconds - computed / worker.load.prefill_rate
        known = self.rate
        worker.encoded = note_encoded(worker.encoded, encoded, left_s, known=known, now_s=now_s)


def encoder_work(
    pictures: PromptPictures, workers: Sequence[Worker], now_s: float
) -> list[EncoderWork]:
    """Return the work that a prompt's pictures would be at each of these workers of one model."""
    measured = [worker.encoded for worker in workers]
    expected = workers[0].load.options.encoder_rate
    rates = encoder_rates(measured, expected=expected, now_s=now_s)
    return [EncoderWork(pictures, rate) for rate in rates]


def extra_s(works: Sequence[EncoderWork], overlaps: Sequence[float]) -> list[float]:
    """Return the seconds that the pictures cost at each worker, `overlaps` ids of the prompt being cached there."""
    return [
        work.pictures.uncached(overlap) / work.rate
        for work, overlap in zip(works, overlaps, strict=True)
    ]
