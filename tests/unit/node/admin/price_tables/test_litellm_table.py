"""litellm's table is read with its conditions in its names, and each kind of provider finds its models in it."""

from typing import Any

import pytest

from smg_node.admin.price_tables.litellm_table import LitellmTable
from smg_node.admin.price_tables.price_row import NamedModel
from smg_node.core.prices.price_parser import parse_price

SAID: dict[str, Any] = {
    "sample_spec": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "alpha-1": {
        "input_cost_per_token": 7e-06,
        "output_cost_per_token": 2.1e-05,
        "cache_read_input_token_cost": 7e-07,
        "cache_creation_input_token_cost": 8.75e-06,
        "cache_creation_input_token_cost_above_1hr": 1.4e-05,
        "cache_creation_input_token_cost_above_12hr": 9e-05,
        "input_cost_per_token_above_200k_tokens": 1.4e-05,
        "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 2.8e-05,
        "input_cost_per_token_flex": 3.5e-06,
        "input_cost_per_token_above_200k_tokens_flex": 7.1e-06,
        "output_cost_per_token_batches": 1.05e-05,
        "input_cost_per_audio_token": 1e-05,
        "off_peak_pricing": {"windows": []},
        "input_cost_per_image": 0.0,
        "search_context_cost_per_query": {
            "search_context_size_low": 0.01,
            "search_context_size_medium": 0.02,
        },
        "file_search_cost_per_1k_calls": 2.5,
        "input_cost_per_request": 0.001,
        "max_tokens": 8192,
    },
    "vertex_ai/alpha-1": {"input_cost_per_token": 8e-06, "output_cost_per_token": 0},
    "bedrock/eu-west-1/vendor.alpha-v1:0": {"input_cost_per_token": 9e-06},
    "vendor.alpha-v1:0": {"input_cost_per_token": 6e-06},
    "elsewhere/alpha-1": {
        "input_cost_per_token": 1e-06,
        "cache_creation_input_token_cost": 0.0,
        "output_cost_per_token": "free",
    },
    "steps/alpha": {
        "tiered_pricing": [
            {"range": [0, 128000.0], "input_cost_per_token": 5e-08, "output_cost_per_token": 4e-07},
            {"range": [128000.0, 1000000.0], "input_cost_per_token": 2.5e-07},
        ]
    },
    "images/alpha": {"input_cost_per_image": 0.04},
    "garbage": 7,
}
TABLE = LitellmTable(SAID)


def test_conditions_are_read_out_of_names() -> None:
    row = TABLE.find(NamedModel("o/alpha-1", "openai"))
    assert row is not None
    assert row.lost == ("input_cost_per_audio_token", "off_peak_pricing")
    assert row.price == {
        "prompt": 7,
        "answer": 21,
        "cached": 0.7,
        "written": 8.75,
        "written_long": 14,
        "per_call": 0.001,
        "steps": [{"above": 200_000, "prompt": 14, "written_long": 28}],
        "tiers": {
            "batch": {"answer": 10.5},
            "flex": {"prompt": 3.5, "steps": [{"above": 200_000, "prompt": 7.1}]},
        },
        "server_tools": {"web_search": 0.02, "file_search": 0.0025},
    }
    parse_price(dict(row.price))


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (NamedModel("v/alpha-1", "vertex_anthropic"), "vertex_ai/alpha-1"),
        (NamedModel("b/vendor.alpha-v1:0", "bedrock", region="eu-west-1"), "bedrock/eu-west-1/vendor.alpha-v1:0"),
        (NamedModel("b/vendor.alpha-v1:0", "bedrock", region="us-east-1"), "vendor.alpha-v1:0"),
        (NamedModel("e/alpha-1", "openai_like", "https://api.elsewhere.com/v1"), "elsewhere/alpha-1"),
        (NamedModel("l/alpha-1", "openai_like", "http://10.0.0.7:8000/v1"), None),
        (NamedModel("z/alpha-1", "azure"), None),
        (NamedModel("n/alpha-1", "of a later release"), None),
    ],
)  # fmt: skip
def test_each_kind_of_provider_has_its_own_names(model: NamedModel, row: str | None) -> None:
    found = TABLE.find(model)
    assert (None if found is None else found.name) == row


def test_steps_may_be_a_list_and_writes_at_nothing_are_unknown() -> None:
    rows = {row.name: row.price for row in TABLE.rows()}
    assert sorted(rows) == sorted(set(SAID) - {"sample_spec", "images/alpha", "garbage"})
    assert rows["steps/alpha"] == {
        "prompt": 0.05,
        "answer": 0.4,
        "steps": [{"above": 128_000, "prompt": 0.25}],
    }
    assert rows["elsewhere/alpha-1"] == {"prompt": 1}


@pytest.mark.parametrize("said", [[], {}, {"a": {"mode": "chat"}}, "prices", None])
def test_what_is_no_table_is_refused(said: object) -> None:
    with pytest.raises(ValueError, match="no table of litellm"):
        LitellmTable(said)
