"""Relayed call: the call of an HTTP worker on a reservation, or of the two workers of a pair."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from smg_node.engines.engine import Prefilled
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.pipeline.pairs.pair_reservation import PairReservation
from smg_node.pipeline.relay.pairs.pair_relay import RelayPair
from smg_node.pipeline.relay.relay_call import RelayCall
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import ResponseFilter
from smg_node.pipeline.reservation import Reservation

OnPrefilled: TypeAlias = Callable[[PairReservation, ResponseFilter, Prefilled], None]
"""Is told what the first half of a pair computed."""


def relayed_call(
    hold: Reservation,
    asked: Relayable,
    passage: ResponseFilter,
    *,
    now_s: float,
    spoke: Callable[[], None],
    prefilled: OnPrefilled,
    parsed: bool,
) -> RelayCall | RelayPair:
    """Return the call on a reservation: of one worker, or of two. `spoke` is called at the first word; `parsed`: its
    events are wanted. `now_s` is the monotonic clock.
    """
    engine = hold.engine
    assert isinstance(engine, HttpEngine), "workers of relayed models speak HTTP"
    if isinstance(hold, PairReservation):
        if asked.shareable:
            pair = RelayPair(
                hold.partners,
                asked,
                passage,
                prefilled=partial(prefilled, hold, passage),
                spoke=spoke,
                parsed=parsed,
            )
            hold.take(pair)
            return pair
        hold.part(now_s)
    return RelayCall(engine, asked, passage, spoke=spoke, parsed=parsed)
