"""Reader of embeddings bodies: texts or token ids, and the encoding of the vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_node.core.generation.request import Prompt
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.completions.prompt import read_prompts
from smg_node.dialects.openai.extras import take_model
from smg_node.dialects.openai.request_draft import Draft, Take, problems_for, take_all
from smg_node.dialects.options import ReaderOptions

INPUTS_MAX: Final = 2_048
"""As many as the official API takes at once."""
_FORMATS: Final = ("float", "base64")


@dataclass(frozen=True, slots=True)
class EmbeddingsBody:
    """Inputs to embed. `packed`: vectors are requested as base64 of 32-bit floats, not as numbers.

    `dimensions` is how many numbers of each vector are wanted, None for all.
    """

    model: str
    prompts: Sequence[Prompt]
    packed: bool
    dimensions: int | None = None
    ignored: tuple[str, ...] = ()


def _take_input(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.request["prompts"] = read_prompts(
        cursor, key, prompts_max=INPUTS_MAX, add_special_tokens=True
    )


def _take_format(draft: Draft, cursor: Cursor, key: str) -> None:
    word = cursor.word(key, _FORMATS)
    if word is not None:
        draft.request["packed"] = word == "base64"


def _take_dimensions(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.request[key] = cursor.integer(key, low=1)


def _take_user(draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.text(key)
    draft.ignore(key)


PARAMETERS: Final[dict[str, Take]] = {
    "model": take_model,
    "input": _take_input,
    "encoding_format": _take_format,
    "dimensions": _take_dimensions,
    "user": _take_user,
}


def read_embeddings(body: dict[str, Any], options: ReaderOptions) -> EmbeddingsBody:
    """Return the parsed body; INVALID_REQUEST with the paths of what is wrong."""
    draft, cursor = Draft(options), Cursor(body, problems_for(options))
    take_all(draft, cursor, PARAMETERS)
    for name in ("model", "input"):
        if not cursor.has(name):
            cursor.raw(name, required=True)
    cursor.problems.check()
    return EmbeddingsBody(
        draft.request["model"],
        draft.request["prompts"],
        draft.request.get("packed", False),
        draft.request.get("dimensions"),
        draft.ignored_in(cursor.problems),
    )
