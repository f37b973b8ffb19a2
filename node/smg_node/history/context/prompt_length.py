"""Prompt length in tokens: renders and encodes a prompt exactly as a generation does."""

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import Prompt
from smg_node.fleet.models.served_model import RelayedModel, ServedModel
from smg_node.history.ports import Measure
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Preparer


class ModelMeasure:
    """One served model whose tokenizer this node has."""

    def __init__(self, model: ServedModel, context: int | None, preparer: Preparer) -> None:
        self.name = model.name
        self.context = context
        self._model = model
        self._preparer = preparer

    def check(self, where: str) -> None:
        """Return: this node has its tokenizer."""

    async def count(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has."""
        return len((await self._preparer.counted(prompt, self._model)).ids)


class RelayedMeasure:
    """A model served only by HTTP workers, whose tokenizer this node does not have."""

    def __init__(self, model: RelayedModel) -> None:
        self.name = model.name
        self.context = None

    def check(self, where: str) -> None:
        """Raise: this node cannot count its tokens."""
        raise self._uncounted(where)

    async def count(self, prompt: Prompt) -> int:
        """Raise."""
        raise self._uncounted("model")

    def _uncounted(self, where: str) -> SmgError:
        return unsupported(
            f"the workers of {self.name!r} speak HTTP and keep its tokenizer to themselves, so that the tokens of a"
            " prompt cannot be counted before it is sent",
            where,
        )


class ModelMeasures:
    """The models that this node's fleet serves."""

    def __init__(self, placer: Placer, preparer: Preparer) -> None:
        self._placer = placer
        self._preparer = preparer

    async def of(self, model: str, *, deadline_s: float) -> Measure:
        """Return the model of that name or alias; NOT_FOUND or OVERLOADED as for a generation."""
        found = self._placer.own.behind(await self._placer.known(model, deadline_s=deadline_s))
        if isinstance(found, RelayedModel):
            return RelayedMeasure(found)
        read = await self._placer.model(model, deadline_s=deadline_s)
        return ModelMeasure(read, self._placer.context(read), self._preparer)
