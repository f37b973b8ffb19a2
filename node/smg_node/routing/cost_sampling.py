"""Cost sampling: draws a candidate among the cheapest, so that many nodes do not all choose the
same one. Pure.
"""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.costs import about, added_s
from smg_node.routing.peer_load_estimate import PeerLoadEstimate, drawn, poured
from smg_node.routing.policy import Asked
from smg_node.routing.pool import Candidate, Pool


class Cheapest:
    """Draws by cost; keeps for each model how much this node places that might as well go elsewhere."""

    def __init__(self) -> None:
        self._unseen: dict[str, PeerLoadEstimate] = {}

    def draw(self, found: Sequence[float], rng: Rng) -> int:
        """Return a candidate that costs about as little as any.

        That is for requests which have their reason to be where they are cheapest, other nodes' as little as this
        one's: they do not herd there.
        """
        return poured(found, about(min(found), 0.0), rng)

    def draw_anywhere(
        self, asked: Asked, pool: Pool, found: Sequence[float], best: float, rng: Rng
    ) -> int:
        """Return a candidate that costs about as little as the `best`, or will when the others' work has arrived.

        That is for requests which cost the same everywhere but for the load: all nodes are after the same worker.
        """
        top = about(best, asked.now_s - pool.candidates[found.index(best)].sampled_s)
        unseen = self._unseen.get(asked.model)
        if unseen is None:
            return drawn(found, best, top, rng)
        return unseen.draw(found, best, top, unseen.seconds(pool, asked.now_s), rng)

    def placed_anywhere(self, model: str, one: Candidate, tokens: float, now_s: float) -> None:
        """Note that such a request was placed there, with so many tokens to compute."""
        unseen = self._unseen.get(model)
        if unseen is None:
            unseen = self._unseen[model] = PeerLoadEstimate()
        unseen.placed(added_s(one, tokens), now_s)
