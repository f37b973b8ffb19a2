"""Tool pictures: the pictures among what a tool answered, as far as the model that called it can be shown them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.media.media_intake import MediaIntake

RESULT_MAX: Final = 8
"""Pictures of one result that a model is shown: each is as long as a page of text."""
WHERE: Final = "tools"


class ToolPictures:
    """Pictures in results of tools; see `pipeline.tool_loop.ports.Pictures`."""

    def __init__(
        self, model: Callable[[str], ServedModel | None], intake: Callable[[], MediaIntake]
    ) -> None:
        """`model` returns that of a name which engines serve, its files read."""
        self._model = model
        self._intake = intake

    async def shown(
        self,
        model: str,
        content: Sequence[Mapping[str, Any]],
        beside: int = 0,
        tenant: str | None = None,
    ) -> tuple[str, ...]:
        """See `Pictures`."""
        served = self._model(model)
        if served is None or served.pictures is None:
            return ()
        # What is in them is looked at like what a client sends.
        urls = [
            f"data:image;base64,{data}"
            for block in content
            if block.get("type") == "image" and isinstance(data := block.get("data"), str)
        ]
        if not urls:
            return ()
        return tuple(await self._intake().shown(served, urls[:RESULT_MAX], WHERE, beside, tenant))
