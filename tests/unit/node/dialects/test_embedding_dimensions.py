"""Shorter embeddings: the first numbers of a vector, of length 1 again; and models that have none."""

from array import array
from collections.abc import Mapping, Sequence

import pytest

from smg_node.core.errors import SmgError
from smg_node.dialects.embeddings.dimensions import check_dimensions, shortened
from smg_node.dialects.embeddings.reader import read_embeddings
from smg_node.dialects.options import ReaderOptions


@pytest.mark.parametrize(
    ("vector", "wanted", "left"),
    [
        ([3.0, 4.0, 12.0], 2, [0.6000000238418579, 0.800000011920929]),
        ([3.0, 4.0], 2, [0.6000000238418579, 0.800000011920929]),
        ([-2.0, 5.0], 1, [-1.0]),
        ([0.0, 0.0, 1.0], 2, [0.0, 0.0]),
    ],
)
def test_a_vector_is_cut_and_has_length_one_again(
    vector: Sequence[float], wanted: int, left: Sequence[float]
) -> None:
    assert array("f", shortened(array("f", vector).tobytes(), wanted)).tolist() == left


def test_a_vector_has_no_more_numbers_than_it_has() -> None:
    with pytest.raises(SmgError) as caught:
        shortened(array("f", [1.0, 2.0]).tobytes(), 3)
    assert (caught.value.where, caught.value.code) == ("dimensions", "invalid_value")
    assert caught.value.message == "the embeddings of this model have 2 dimensions, not 3"


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({}, None),
        ({"is_matryoshka": "True"}, None),
        ({"is_matryoshka": "False"}, "unsupported_parameter"),
        ({"is_matryoshka": "false", "matryoshka_dimensions": "[256, 512]"}, None),
        ({"matryoshka_dimensions": "128,512"}, "invalid_value"),
    ],
)
def test_a_model_may_forbid_it_or_have_some_sizes_only(
    facts: Mapping[str, str], code: str | None
) -> None:
    if code is None:
        check_dimensions(256, facts)
        return
    with pytest.raises(SmgError) as caught:
        check_dimensions(256, facts)
    assert (caught.value.where, caught.value.code) == ("dimensions", code)


def test_dimensions_are_read_as_a_number_or_not_at_all() -> None:
    body = {"model": "m", "input": "a"}
    assert read_embeddings(body, ReaderOptions()).dimensions is None
    assert read_embeddings({**body, "dimensions": None}, ReaderOptions()).dimensions is None
    assert read_embeddings({**body, "dimensions": 64}, ReaderOptions()).dimensions == 64
