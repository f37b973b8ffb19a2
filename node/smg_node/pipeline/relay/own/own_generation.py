"""Own generation: a generation by own gRPC engines that is one call of a request to a route.

The request is let in, limited, logged and reported under the public name by whoever makes the call; here are the prompt,
the worker and the engine calls, as of any generation.
"""

from collections.abc import Mapping

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.core.journey import Journey
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.generation.generator import GenerationRun
from smg_node.pipeline.placement.placer import PlacementRequest
from smg_node.pipeline.reservation import Reservation

_NOTHING = Usage(0, 0, 0)


class OwnGeneration(GenerationRun, eq=False):
    """One generation, made by `begun`; see `run_interface.Run`. One that is not `patient` waits for no worker."""

    patient: bool = True

    async def _placed(self, model: ServedModel, wish: PlacementRequest) -> Reservation:
        wish.patient = self.patient
        return await super()._placed(model, wish)

    def _report(self, journey: Journey) -> None:
        """Do nothing: it is not over with this call."""

    def begun(self, model: ServedModel, public: str, story: Journey) -> None:
        """Take `model` for what `public` means to its client; its steps are those of `story`."""
        parts = self.parts
        self.served, self._model, self.journey = model, public, story
        self.budget = parts.retries.asked(model.name, parts.clock.monotonic_s())

    @property
    def failure(self) -> SmgError | None:
        """How it failed, if it did."""
        return self._failure

    @property
    def oddities(self) -> Mapping[str, int]:
        """What was not as expected in its answers, and how often."""
        return {} if self.story is None else self._oddities(self.story)

    @property
    def usage(self) -> Usage:
        """What it cost; nothing where it failed before a token came."""
        story = self.story
        if story is None:
            return _NOTHING
        used = story.used or story.usage()
        return _NOTHING if self._failure is not None and not used.completion_tokens else used
