"""Target call: the call of one target of a route, at a vendor or of own engines, timed and billed."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial

from smg_node.core.errors import SmgError
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import OwnCall, TargetAsked
from smg_node.pipeline.relay.vendors.answer_times import AnswerTimes
from smg_node.pipeline.relay.vendors.call_prices import CallPrices
from smg_node.pipeline.relay.vendors.call_state import CallState
from smg_node.pipeline.relay.vendors.provider_meter import ProviderMeter
from smg_node.pipeline.relay.vendors.vendor_call import VendorCall
from smg_node.pipeline.reservation import Reservation


class TargetCall:
    """One call; `own` is the same where it is one of own engines. `spoke` is called at its first word.

    `patient`: it may wait for own workers, because no other target could be called.
    """

    def __init__(
        self,
        told: TargetAsked,
        hold: Reservation,
        engine: HttpEngine,
        spoke: Callable[[], None],
        *,
        patient: bool,
    ) -> None:
        self.own: OwnCall | None = None
        self._told = told
        self._side = engine.vendor
        self._times = times = AnswerTimes(hold.worker.load, hold.began_s, told.parts.clock)

        def timed() -> None:
            times.spoke(None if self.own is None else self.own.first_s)
            if self._limits is not None:
                self._limits.spoke()
            spoke()

        self._limits: ProviderMeter | None = None
        self._call: VendorCall | OwnCall
        if engine.own_model:
            make = told.parts.own_calls
            assert make is not None, "targets of own engines are opened where they can be called"
            self._call = self.own = make(told, engine.own_model, timed, patient=patient)
        else:
            assert self._side is not None, "it is a target"
            names = told.model, told.parts.clock.now_ms
            asked = told.asked, told.asks, *names
            self._limits = limits = _limits(told, self._side)
            state = CallState(told.parts.state_cache, told.context.tenant, told.asks.dialect)
            self._call = VendorCall(engine, self._side, *asked, timed, limits, state, hold.cached)
        self.usage = self._call.usage

    async def answer(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the head and the body that the client gets."""
        call, times, complete = self._call, self._times, False
        try:
            async with aclosing(call.answer(request)) as pieces:
                async for piece in pieces:
                    yield piece
            complete = True
        except SmgError as error:
            times.failed(error)
            raise
        finally:
            if isinstance(call, VendorCall) and self._side is not None:
                spent = call.spent()
                self._told.meter.vendor_called(self._side, spent)
                if self._limits is not None:
                    self._limits.end(call.usage, spent, complete=complete)
            else:
                self._told.meter.own_called(self._told.model, call.usage)
        times.ended(call.usage.completion_tokens, streamed=call.streamed)


def _limits(told: TargetAsked, side: VendorSide) -> ProviderMeter:
    """Return the meter of a provider's own limits: with its client's own key of the vendor, calls are not the account's."""
    parts = told.parts
    admission = parts.admission if side.own_account(told.asks.headers) else None
    prices = partial(CallPrices, parts.prices, told.asked, parts.clock.now_ms)
    return ProviderMeter(admission, prices, told.asked, side, told.model)
