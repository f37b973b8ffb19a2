"""Every kind of picture that clients send becomes, to the bit, what vLLM itself makes of it, or is refused as there."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

import support.media
from smg_node.core.errors import SmgError
from smg_node.media.families.registry import UnknownFamily
from smg_node.media.family import Family, FinishedFor
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from support.media.checkpoints import found
from support.media.resize_vectors import digest

FOLDER: Final = Path(*support.media.__path__) / "odd_pictures"
JUDGED: Final[dict[str, Any]] = json.loads(FOLDER.with_suffix(".json").read_text())["pictures"]
WHERE: Final = "messages[0].content[1]"
LIMITS: Final = DecodeLimits(1 << 20)


def _family() -> Family:
    made = found("qwen3_vl")
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    return made


def _made(name: str) -> str:
    """Return grid and digest of what we make of a file; SmgError where we refuse it."""
    data, family = (FOLDER / name).read_bytes(), _family()
    header = read_header(data, LIMITS, WHERE)
    plan = family.plan(header.width, header.height)
    patches = family.patches(decode(data, header, WHERE), plan)
    batch = family.batch([plan], [patches], [], FinishedFor("float32", device_normalizes=False))
    assert batch is not None
    values = digest(b"".join(batch.pixels.pieces))
    return f"{'x'.join(map(str, plan.grid))} {values}"


def test_all_files_were_judged() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(JUDGED)
    assert len(JUDGED) >= 50


@pytest.mark.parametrize("name", sorted(name for name, said in JUDGED.items() if said != "refused"))
def test_a_picture_becomes_what_vllm_makes_of_it(name: str) -> None:
    assert _made(name) == JUDGED[name]


@pytest.mark.parametrize("name", sorted(name for name, said in JUDGED.items() if said == "refused"))
def test_what_vllm_cannot_load_is_refused_at_its_path(name: str) -> None:
    with pytest.raises(SmgError) as caught:
        _made(name)
    assert (caught.value.status, caught.value.code) == (400, "invalid_image")
    assert caught.value.where == WHERE
