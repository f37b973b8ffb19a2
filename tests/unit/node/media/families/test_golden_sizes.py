"""The golden table: seven sizes in every family, as the processors of transformers 5.24 have them."""

import pytest

from support.media.checkpoints import CHECKPOINTS, TOKENS, family, vocabulary

SIZES = ("640x480", "1920x1080", "500x500", "333x251", "100x1000", "4000x3000", "32x32")

# Rows and columns of the grid for each size, then how many ids replace the anchor.
GOLDEN: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "qwen2_5_vl": (
        ("34x46", "78x138", "36x36", "18x24", "72x8", "214x286", "4x4"),
        (391, 2691, 324, 108, 144, 15301, 4),
    ),
    "qwen3_vl": (
        ("30x40", "68x120", "32x32", "16x20", "62x6", "188x250", "16x16"),
        (300, 2040, 256, 80, 93, 11750, 64),
    ),
    "glm4v": (
        ("34x46", "78x138", "36x36", "18x24", "72x8", "150x200", "6x6"),
        (391, 2691, 324, 108, 144, 7500, 9),
    ),
    "kimi_k25": (
        ("36x46", "78x138", "36x36", "18x24", "72x8", "112x150", "4x4"),
        (414, 2691, 324, 108, 144, 4200, 4),
    ),
    "llava": (("24x24",) * 7, (576,) * 7),
    "llava_next": (
        ("2x2", "2x2", "2x2", "1x2", "3x1", "2x2", "1x2"),
        (2340, 1948, 2928, 1368, 1224, 2340, 1176),
    ),
    "llama4": (
        ("2x2", "3x5", "2x2", "1x1", "3x1", "3x4", "1x1"),
        (727, 2322, 727, 147, 582, 1887, 147),
    ),
    "pixtral": (
        ("30x40", "36x64", "32x32", "16x21", "63x7", "48x64", "2x2"),
        (1230, 2340, 1056, 352, 504, 3120, 6),
    ),
    # In merged patches of 28: PixtralProcessor hands its image processor the merged patch, whatever the files say.
    "mistral3": (
        ("18x23", "31x55", "18x18", "9x12", "36x4", "42x55", "2x2"),
        (432, 1736, 342, 117, 180, 2352, 6),
    ),
    "phi4mm": (
        ("2x2", "3x5", "2x2", "1x1", "3x1", "3x4", "1x1"),
        (1065, 3918, 1329, 494, 561, 3393, 545),
    ),
    "gemma3": (("1x1",) * 7, (260,) * 7),
    "gemma4": (
        ("42x57", "36x66", "48x48", "42x57", "156x15", "42x57", "48x48"),
        (268, 266, 258, 268, 262, 268, 258),
    ),
    "internvl": (
        ("3x4", "2x4", "1x1", "3x4", "10x1", "3x4", "1x1"),
        (3330, 2306, 258, 3330, 2818, 3330, 258),
    ),
    "internvl_chat": (
        ("3x4", "2x4", "1x1", "3x4", "10x1", "3x4", "1x1"),
        (3330, 2306, 258, 3330, 2818, 3330, 258),
    ),
    "llava_siglip": (("27x27",) * 7, (729,) * 7),
    "gemma3n": (("1x1",) * 7, (260,) * 7),
    "llava_onevision": (
        ("2x2", "3x5", "2x2", "1x1", "3x1", "5x6", "1x1"),
        (2929, 7269, 3699, 1317, 1539, 7309, 1485),
    ),
    # Newlines between the rows of tiles count, the two at the end as one.
    "idefics3": (
        ("3x4", "3x4", "4x4", "4x4", "4x1", "3x4", "4x4"),
        (2227, 2227, 2912, 2912, 860, 2227, 2912),
    ),
    "smolvlm": (
        ("3x4", "3x4", "4x4", "4x4", "4x1", "3x4", "4x4"),
        (1083, 1083, 1416, 1416, 420, 1083, 1416),
    ),
    "llava_next_siglip": (
        ("2x2", "2x4", "2x2", "1x2", "3x1", "3x3", "1x2"),
        (2929, 5967, 3699, 1728, 1539, 5731, 1512),
    ),
    "dots_ocr": (
        ("34x46", "78x138", "36x36", "18x24", "72x8", "206x276", "4x4"),
        (391, 2691, 324, 108, 144, 14214, 4),
    ),
    "glm_ocr": (
        ("34x46", "78x138", "36x36", "18x24", "72x8", "134x180", "6x6"),
        (391, 2691, 324, 108, 144, 6030, 9),
    ),
    "deepseek_vl2": (
        ("2x2", "2x4", "2x2", "1x1", "3x1", "3x3", "1x1"),
        (1023, 1807, 1023, 421, 841, 2017, 421),
    ),
    "cohere2_vision": (
        ("1x2", "3x4", "1x1", "1x1", "2x1", "3x4", "1x1"),
        (773, 3343, 259, 259, 773, 3343, 259),
    ),
}
TILES = {
    "llama4": (5, 16, 5, 1, 4, 13, 1),
    "internvl": (13, 9, 1, 13, 11, 13, 1),
    "llava_next": (5, 5, 5, 3, 4, 5, 3),
    "phi4mm": (4, 15, 4, 1, 3, 12, 1),
    "internvl_chat": (13, 9, 1, 13, 11, 13, 1),
    "llava_onevision": (5, 16, 5, 2, 4, 31, 2),
    "idefics3": (13, 13, 17, 17, 5, 13, 17),
    "smolvlm": (13, 13, 17, 17, 5, 13, 17),
    "cohere2_vision": (3, 13, 1, 1, 3, 13, 1),
    "llava_next_siglip": (5, 9, 5, 3, 4, 10, 3),
    "deepseek_vl2": (5, 9, 5, 2, 4, 10, 2),
}
PIXELS = {
    "pixtral": ("480x640", "576x1024", "512x512", "256x336", "1008x112", "768x1024", "32x32"),
    "mistral3": ("504x644", "868x1540", "504x504", "252x336", "1008x112", "1176x1540", "56x56"),
}


def test_every_family_is_in_the_table() -> None:
    assert GOLDEN.keys() == CHECKPOINTS.keys() == TOKENS.keys()


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("at", range(len(SIZES)), ids=SIZES)
def test_a_size_becomes_this_grid_and_so_many_ids(name: str, at: int) -> None:
    made = family(name)
    width, height = map(int, SIZES[at].split("x"))
    grids, lengths = GOLDEN[name]
    plan = made.plan(width, height)
    layout = made.layout(plan, vocabulary(name))
    rows, columns = plan.grid[-2:]
    assert f"{rows}x{columns}" == grids[at]
    assert len(layout.ids) == lengths[at]
    assert list(layout.ids).count(made.placeholder) == plan.tokens
    assert (plan.width, plan.height) == (width, height)
    if name in TILES:
        assert plan.shape[0] == TILES[name][at]
    if name in PIXELS:
        assert f"{plan.rows}x{plan.columns}" == PIXELS[name][at]
