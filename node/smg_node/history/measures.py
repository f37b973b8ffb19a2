"""How long prompts are: rendered and encoded exactly as a generation does it."""

from smg_node.core.request import Prompt
from smg_node.fleet.model import ServedModel
from smg_node.history.ports import Measure
from smg_node.pipeline.place import Placer
from smg_node.pipeline.prepare import Preparer


class ModelMeasure:
    """One served model."""

    def __init__(self, model: ServedModel, context: int | None, preparer: Preparer) -> None:
        self.name = model.name
        self.context = context
        self._model = model
        self._preparer = preparer

    async def count(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has."""
        return len((await self._preparer.prompt(prompt, self._model)).ids)


class ModelMeasures:
    """The models that this node's fleet serves."""

    def __init__(self, placer: Placer, preparer: Preparer) -> None:
        self._placer = placer
        self._preparer = preparer

    async def of(self, model: str, *, deadline_s: float) -> Measure:
        """Return the model of that name or alias; NOT_FOUND or OVERLOADED as a generation would be."""
        served = await self._placer.model(model, deadline_s=deadline_s)
        return ModelMeasure(served, self._placer.context(served), self._preparer)
