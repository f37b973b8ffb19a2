"""A model that nobody serves: what may have been meant, or what there is."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from smg_node.fleet.models.model_registry import Models
from smg_node.fleet.models.unknown_model import unknown_model


def models(*served: tuple[str, tuple[str, ...]], idle: tuple[str, ...] = ()) -> tuple[Models, Any]:
    found = [SimpleNamespace(name=name, aliases=set(aliases)) for name, aliases in served]
    fake = SimpleNamespace(all=lambda: found, all_relayed=list)
    return cast(Models, fake), lambda model: () if model.name in idle else ("w-1",)


MANY = tuple((f"org/model-{at}", ()) for at in "abcdefgh")


@pytest.mark.parametrize(
    ("name", "served", "hint"),
    [
        ("lama-3", (("llama-3", ()),), "; did you mean 'llama-3'?"),
        ("LLAMA-3", (("meta/llama-3", ()),), "; did you mean 'meta/llama-3'?"),
        ("Qwen/Qwen3-8B", (("qwen3-8b", ()), ("gpt", ())), "; did you mean 'qwen3-8b'?"),
        ("gpt-4o", (("qwen3-8b", ("gpt-4",)),), "; did you mean 'gpt-4'?"),
        ("llama", (("llama1", ()), ("llama2", ())), "; did you mean 'llama2' or 'llama1'?"),
        ("zzz", (("llama", ("small",)),), "; served are 'llama', 'small'"),
        ("zzz", MANY, "; GET /v1/models lists the 8 names that do"),
        ("zzz", (), "; no model is served yet"),
    ],
)
def test_the_nearest_names_are_told(
    name: str, served: tuple[tuple[str, tuple[str, ...]], ...], hint: str
) -> None:
    error = unknown_model(name, *models(*served))
    assert error.message == f"the model {name!r} does not exist here{hint}"
    assert (error.status, error.code, error.where) == (404, "model_not_found", "model")


def test_a_model_without_workers_is_not_offered() -> None:
    error = unknown_model("lama", *models(("llama", ()), idle=("llama",)))
    assert error.message == "the model 'lama' does not exist here; no model is served yet"


def test_a_long_name_is_cut() -> None:
    assert len(unknown_model("x" * 10_000, *models(("m", ()))).message) < 150
