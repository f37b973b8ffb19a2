from smg_chaos.bench.provider_memory import definitions, table


def test_every_model_of_every_provider_is_a_target_of_a_route() -> None:
    said = definitions(3, 2, 4003)
    assert list(said["providers"]) == ["account-0", "account-1", "account-2"]
    assert said["providers"]["account-2"] == {
        "kind": "anthropic",
        "base": "http://127.0.0.1:4003",
        "keys": ["sk-vendor"],
        "models": [{"model": "claude-model-0"}, {"model": "claude-model-1"}],
    }
    assert said["routes"] == {
        "model-0": {
            "targets": [
                "account-0/claude-model-0",
                "account-1/claude-model-0",
                "account-2/claude-model-0",
            ]
        },
        "model-1": {
            "targets": [
                "account-0/claude-model-1",
                "account-1/claude-model-1",
                "account-2/claude-model-1",
            ]
        },
    }


def test_the_table_tells_medians_and_what_is_beyond_fewer_providers() -> None:
    found = {0: [37.0, 36.0, 40.0], 1: [47.0, 47.0, 46.9], 50: [52.0, 52.5, 51.0]}
    assert table(found, 5).splitlines() == [
        "providers  models   PSS MB  spread  beyond",
        "        0       0     37.0     11%",
        "        1       5     47.0      0%  +10.0 MB to 0",
        "       50     250     52.0      3%  +15.0 MB to 0, +5.0 MB to 1",
    ]
