"""Expected prices: what one request would cost at each target of its route, for routes that choose by it. Pure."""

from collections.abc import Mapping
from typing import Final

from smg_node.core.prices.cost import expected_dollars
from smg_node.core.prices.price import Price, day_of
from smg_node.core.prices.price_list import PriceList
from smg_node.pipeline.relay.relay_request import Relayable

UNKNOWN: Final = float("inf")


class ExpectedPrices:
    """Prices of one request for `route`, as they count at `now_ms`.

    `places` are the provider and its model of each worker; "" for one of ours.
    """

    def __init__(
        self,
        prices: PriceList,
        asked: Relayable,
        route: str,
        places: Mapping[str, tuple[str, str]],
        now_ms: int,
    ) -> None:
        tier = asked.fields.get("service_tier")
        self._tier = tier if isinstance(tier, str) else ""
        self._prompt = asked.prompt_tokens
        self._day = day_of(now_ms)
        self._prices: dict[str, Price] = {}
        for worker, (provider, model) in places.items():
            price = prices.of(route, provider, model)
            if price is not None:
                self._prices[worker] = price

    def dollars(
        self, worker: str, cached_share: float, answer: int, written_share: float = 0.0, /
    ) -> float:
        """Return what an answer of so many tokens costs at a worker; infinity where no price is known.

        `cached_share` (0 to 1) of the prompt is read from its vendor's cache, `written_share` newly written to it.
        """
        price = self._prices.get(worker)
        if price is None:
            return UNKNOWN
        return expected_dollars(
            price,
            prompt=self._prompt,
            cached=round(self._prompt * cached_share),
            written=round(self._prompt * written_share),
            answer=answer,
            tier=self._tier,
            day=self._day,
        )
