"""Forty random sizes a family, as transformers 5.24 with torchvision has them (`support/media/judged_sizes.json`).

One row is width, height, and shape, grid and number of ids of what `picture_judge.py` made of it; null where it refused.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from support.house.tree import ROOT
from support.media.checkpoints import CHECKPOINTS, family, vocabulary

FILE: Path = ROOT / "tests" / "support" / "media" / "judged_sizes.json"
JUDGED: dict[str, list[list[Any]]] = json.loads(FILE.read_text())


def test_every_family_was_judged() -> None:
    assert JUDGED.keys() == CHECKPOINTS.keys()
    assert {len(rows) for rows in JUDGED.values()} == {40}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_random_sizes_become_the_same_shapes_grids_and_ids(name: str) -> None:
    made = family(name)
    for width, height, shape, grid, ids in JUDGED[name]:
        if shape is None:
            with pytest.raises(SmgError):
                made.plan(width, height)
            continue
        plan = made.plan(width, height)
        values = [*plan.shape]
        if name == "phi4mm":
            values[0] += 1  # the crop of the whole
        elif name == "gemma4":
            values[0] = 2520  # filled up
        assert values in (shape, shape[1:]), (width, height)
        assert grid in (None, list(plan.grid)), (width, height)
        assert len(made.layout(plan, vocabulary(name)).ids) == ids, (width, height)
