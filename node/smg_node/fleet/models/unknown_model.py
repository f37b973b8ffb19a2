"""Unknown model: the error for a name that no served model has, with the nearest names."""

from collections.abc import Callable, Sequence
from typing import Final

from smg_node.config.schema.suggestions import nearest_few
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.json_cursor import quoted
from smg_node.fleet.models.model_registry import Models
from smg_node.fleet.models.served_model import AnyModel

_NEAR_MAX: Final = 3
"""More names than these are a list to read, and `GET /v1/models` has it."""
_COMPARED_MAX: Final = 500
"""Comparing one takes about 20 us, on the loop."""


def unknown_model(
    name: str, models: Models, serving: Callable[[AnyModel], Sequence[object]]
) -> SmgError:
    """Return NOT_FOUND `model_not_found` for `name`: what may have been meant, or what there is.

    `serving` returns the workers of a model; one without any is not offered.
    """
    served: list[AnyModel] = [*models.all(), *models.all_relayed()]
    known = sorted(
        {each for model in served if serving(model) for each in (model.name, *model.aliases)}
    )
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"the model {quoted(name)} does not exist here{_hint(name, known)}",
        where="model",
        code="model_not_found",
    )


def _hint(name: str, known: Sequence[str]) -> str:
    compared = known[:_COMPARED_MAX]
    near = nearest_few(name, compared, at_most=_NEAR_MAX) or _nearest_last_parts(name, compared)
    if near:
        return f"; did you mean {' or '.join(map(quoted, near))}?"
    if not known:
        return "; no model is served yet"
    if len(known) <= _NEAR_MAX:
        return f"; served are {', '.join(map(quoted, known))}"
    return f"; GET /v1/models lists the {len(known)} names that do"


def _nearest_last_parts(name: str, known: Sequence[str]) -> Sequence[str]:
    """Return the names that are near without their owners: `qwen3-8b` for `Qwen/Qwen3-8B`."""
    by_part: dict[str, str] = {}
    for each in known:
        by_part.setdefault(_last_part(each), each)
    return [by_part[part] for part in nearest_few(_last_part(name), by_part, at_most=_NEAR_MAX)]


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()
