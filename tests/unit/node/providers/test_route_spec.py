"""A route is read with everything that is wrong in it, and written as it was read."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.providers.route_spec import ENGINES, RouteSpec, RouteTarget, read_route, route_value

GOOD: dict[str, Any] = {
    "targets": [
        "ant/claude-sonnet-5",
        {"to": "bed/arn:aws:bedrock:eu/x", "weight": 3, "on": ["rate", "full"]},
    ]
}


def test_targets_are_names_or_objects() -> None:
    assert read_route("r", GOOD) == RouteSpec(
        "r",
        (
            RouteTarget("ant", "claude-sonnet-5"),
            RouteTarget("bed", "arn:aws:bedrock:eu/x", 3.0, ("rate", "full")),
        ),
    )


def test_what_was_read_is_written_so_that_it_is_read_again() -> None:
    route = read_route("r", GOOD)
    assert read_route("r", route_value(route)) == route
    assert route_value(route)["targets"][0] == {"to": "ant/claude-sonnet-5"}


@pytest.mark.parametrize(
    ("said", "where", "words"),
    [
        ([], "spec", "a route is an object with `targets`, not list"),
        ({}, "targets", "required"),
        ({"targets": []}, "targets", "at least 1"),
        ({"targets": ["claude"]}, "targets[0]", "a provider's name, a slash"),
        ({"targets": ["/claude"]}, "targets[0]", "a provider's name, a slash"),
        ({"targets": [7]}, "targets[0]", "object"),
        ({"targets": [{"weight": 1}]}, "targets[0].to", "required"),
        ({"targets": [{"to": "a/b", "weight": 0}]}, "targets[0].weight", "0.05"),
        ({"targets": [{"to": "a/b", "weight": 21}]}, "targets[0].weight", "20"),
        ({"targets": [{"to": "a/b", "on": ["snow"]}]}, "targets[0].on[0]", "must be one of rate"),
        ({"targets": [{"to": "a/b", "on": ["rate"]}]}, "targets", "without `on`"),
        ({"targets": ["a/b", "a/b"]}, "targets[1]", "a/b is target 0 already"),
        ({"targets": ["a/b"], "choose": "magic"}, "choose", "no parameter of this name"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(said: object, where: str, words: str) -> None:
    with pytest.raises(SmgError, match=r"(?s).*") as caught:
        read_route("r", said)
    assert caught.value.where == where
    assert words in caught.value.message


def test_a_target_of_own_engines_is_spelled_like_one_of_a_provider() -> None:
    route = read_route(
        "qwen3", {"targets": ["engines/Qwen/Qwen3-8B", {"to": "a/b", "on": ["full"]}]}
    )
    assert route.targets[0] == RouteTarget(ENGINES, "Qwen/Qwen3-8B")
    assert route_value(route)["targets"][0] == {"to": "engines/Qwen/Qwen3-8B"}
