"""Own engines: the target of a route that stands for a model of this cluster's own workers.

It is an engine of the fleet as models at vendors are, so that it is chosen, excluded and shown like them. It has no
address: a call of it is a call of the model `own_model` within this node, which finds a worker of its own.
"""

from collections.abc import Sequence
from typing import Final, NoReturn

from smg_node.engines.engine import OWN_MODEL, ModelCard
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.status_mapping import not_implemented
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.load import Load

BOUNDLESS: Final = 1_000_000
"""Requests at once: who is full are its servers, each by itself."""


class OwnEngines(HttpEngine):
    """One target; see `engine.Engine`. `own` is the model's name among the cluster's own, `public` that for clients,
    and `provider` stands where other targets name theirs.
    """

    def __init__(self, own: str, *, public: str, provider: str) -> None:
        super().__init__(_NoTransport(f"{provider}/{own}"), EngineOptions(), model=public)
        self.own_model = own
        self.served_name = own
        self._public = public
        self._provider = provider

    async def serving(self, timeout_s: float) -> bool:
        """Return that it may be called: the model's workers are looked at for themselves."""
        return True

    async def card(self, timeout_s: float) -> ModelCard:
        """Return what the route says."""
        return ModelCard(
            contract=self.contract,
            model=self._public,
            model_path="",
            context=None,
            prompt_max=None,
            vocabulary=None,
            eos_ids=(),
            running_max=BOUNDLESS,
            server={"provider": self._provider, OWN_MODEL: self.own_model},
        )

    async def loads(self, timeout_s: float) -> Sequence[Load]:
        """Raise that its workers say that for themselves."""
        raise not_implemented("a target of a route has no load of its own")


class _NoTransport:
    """Transport to nowhere; see `HttpTransport`."""

    def __init__(self, target: str) -> None:
        self.target = target

    async def send(self, call: HttpCall) -> NoReturn:
        """Raise: nothing is sent to a target that is a model of this node."""
        raise AssertionError("own engines are called within the node")

    async def close(self) -> None:
        """Do nothing."""
