"""The table of genai-prices is read with its days, steps and variants, and names are matched by its clauses."""

from typing import Any

import pytest

from smg_node.admin.price_tables.genai_table import GenaiTable
from smg_node.admin.price_tables.price_differences import difference_rows, differences
from smg_node.admin.price_tables.price_row import NamedModel
from smg_node.core.prices.price_parser import parse_price

SAID: list[Any] = [
    {
        "id": "openai",
        "api_pattern": r"https://api\.openai\.com",
        "models": [
            {
                "id": "beta-2",
                "match": {"or": [{"equals": "beta-2"}, {"regex": r"^beta-2-\d{4}$"}]},
                "prices": [
                    {"prices": {"input_mtok": 6, "output_mtok": 24, "web_searches_kcount": 10}},
                    {
                        "constraint": {"start_date": "2026-05-01"},
                        "prices": {
                            "input_mtok": {"base": 5, "tiers": [{"start": 100000, "price": 10}]},
                            "cache_read_mtok": 0.5,
                            "cache_write_mtok": 6.25,
                            "cache_write_1h_mtok": 10,
                            "output_mtok": {"base": 20, "tiers": [{"start": 100000, "price": 30}]},
                            "input_audio_mtok": 40,
                        },
                    },
                    {
                        "constraint": {"start_time": "00:30:00Z", "end_time": "08:30:00Z"},
                        "prices": {"input_mtok": 1},
                    },
                ],
                "price_variants": [
                    {"when": {"service_tier": "default"}, "prices": {}},
                    {
                        "when": {"service_tier": "flex"},
                        "constraint": {"start_date": "2026-09-01"},
                        "prices": {"input_mtok": 2.5, "output_mtok": 10},
                    },
                    {"when": {"speed": "fast"}, "prices": {"input_mtok": 30}},
                ],
            },
            {"id": "draw", "match": {"starts_with": "draw"}, "prices": {"output_image_mtok": 4}},
        ],
    },
    {
        "id": "elsewhere",
        "api_pattern": r"https://api\.elsewhere\.com",
        "models": [
            {
                "id": "gamma",
                "match": {"and": [{"starts_with": "gamma"}, {"contains": "chat"}]},
                "prices": {"input_mtok": 0.3, "output_mtok": 0.9, "requests_kcount": 2},
            },
            {"id": "odd", "match": {"regex": "(("}, "prices": {"input_mtok": 1}},
        ],
    },
]
TABLE = GenaiTable(SAID)


def test_days_steps_and_variants_become_periods_and_tiers() -> None:
    row = TABLE.find(NamedModel("o/beta-2", "openai"))
    assert row is not None
    assert row.lost == ("input_audio_mtok", "price_variants by speed", "prices of some hours")
    later = {
        "prompt": 5,
        "cached": 0.5,
        "written": 6.25,
        "written_long": 10,
        "answer": 20,
        "steps": [{"above": 100_000, "prompt": 10, "answer": 30}],
    }
    assert row.price == {
        "periods": [
            {"prompt": 6, "answer": 24, "server_tools": {"web_search": 0.01}},
            {"from": "2026-05-01", **later},
            {"from": "2026-09-01", **later, "tiers": {"flex": {"prompt": 2.5, "answer": 10}}},
        ]
    }
    parse_price(dict(row.price))


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (NamedModel("o/beta-2-2026", "openai"), "openai/beta-2"),
        (NamedModel("o/BETA-2", "openai"), "openai/beta-2"),
        (NamedModel("o/beta-20", "openai"), None),
        (NamedModel("o/draw-1", "openai"), None),
        (NamedModel("e/gamma-chat", "openai_like", "https://api.elsewhere.com/v1"), "elsewhere/gamma"),
        (NamedModel("e/gamma", "openai_like", "https://api.elsewhere.com/v1"), None),
        (NamedModel("x/beta-2", "xai"), None),
    ],
)  # fmt: skip
def test_names_are_matched_by_clauses(model: NamedModel, row: str | None) -> None:
    found = TABLE.find(model)
    assert (None if found is None else found.name) == row


def test_all_rows_have_a_price_that_can_be_set() -> None:
    rows = list(TABLE.rows())
    assert [row.name for row in rows] == ["openai/beta-2", "elsewhere/gamma", "elsewhere/odd"]
    assert rows[1].price == {"prompt": 0.3, "answer": 0.9, "per_call": 0.002}


@pytest.mark.parametrize("said", [{}, [], [{"id": "x"}], None, "prices"])
def test_what_is_no_table_is_refused(said: object) -> None:
    with pytest.raises(ValueError, match="no table of genai-prices"):
        GenaiTable(said)


def test_differences_tell_new_changed_same_and_missing_apart() -> None:
    base = "https://api.elsewhere.com/v1"
    models = [
        NamedModel("e/gamma-chat", "openai_like", base),
        NamedModel("f/gamma-chat", "openai_like", base),
        NamedModel("g/gamma-chat", "openai_like", base),
        NamedModel("g/unknown", "openai_like", base),
    ]
    row = {"prompt": 0.3, "answer": 0.9, "per_call": 0.002}
    known: dict[str, dict[str, Any]] = {
        "f/gamma-chat": {"price": {"prompt": 9}},
        "g/gamma-chat": {"price": row},
    }
    found = differences(TABLE, models, known)
    assert [one.change for one in found] == ["new", "changed", "same", "not there"]
    assert [one.name for one in differences(TABLE, models, known, "g/*")] == [
        "g/gamma-chat",
        "g/unknown",
    ]
    shown = list(difference_rows(found))
    assert shown[1] == ("f/gamma-chat", "changed", "elsewhere/gamma", "9 - - -", "0.3 - - 0.9")
    assert shown[2][-1] == shown[3][-1] == ""
    assert [one.name for one in differences(TABLE, None, {}, "else*")] == [
        "elsewhere/gamma",
        "elsewhere/odd",
    ]
