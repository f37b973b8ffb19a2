"""A route is read with everything that is wrong in it, and written as it was read."""

from datetime import UTC, datetime
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.providers.route_spec import ENGINES, RouteSpec, RouteTarget, read_route, route_value
from smg_node.providers.routes.route_ways import Shadow, Split

GOOD: dict[str, Any] = {
    "targets": [
        "ant/claude-sonnet-5",
        {"to": "bed/arn:aws:bedrock:eu/x", "weight": 3, "on": ["rate", "full"]},
    ]
}


SPLIT: dict[str, Any] = {"to": "a", "share": 0.1}
SHADOW: dict[str, Any] = {"to": "o/gpt", "share": 0.01, "budget": "20/day"}


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


def test_a_route_without_ways_is_written_as_before_there_were_any() -> None:
    assert route_value(read_route("r", GOOD)).keys() == {"targets"}
    assert route_value(read_route("r", {**GOOD, "choose": "weighted"})).keys() == {"targets"}


def test_ways_are_read_and_written_back() -> None:
    said = {
        **GOOD,
        "choose": "cheapest",
        "split": {"to": "bed", "share": 0.1, "key": "user", "until": "2026-12-31", "name": "eu-1"},
        "shadow": {"to": "o/gpt/5", "share": 1, "budget": "20/day", "keep_text": True},
    }
    route = read_route("r", said)
    assert route.choose == "cheapest"
    assert route.split == Split("bed", 0.1, "user", "2026-12-31", "eu-1")
    assert route.shadow == Shadow("o/gpt/5", 1.0, 20, keep_text=True)
    assert route.providers == {"ant", "bed", "o"}
    assert route_value(route) == {**said, "targets": route_value(route)["targets"]}
    assert read_route("r", route_value(route)) == route


def test_a_way_says_only_what_it_must() -> None:
    route = read_route("r", {"targets": ["a/b"], "split": SPLIT, "shadow": SHADOW})
    assert route.split == Split("a", 0.1)
    assert route.shadow == Shadow("o/gpt", 0.01, 20)
    assert read_route("r", route_value(route)) == route


def test_all_mistakes_are_told_at_once() -> None:
    wrong = {"targets": ["a/b"], "choose": "x", "split": {"to": "q"}, "shadow": {"to": "o"}}
    with pytest.raises(SmgError) as caught:
        read_route("r", wrong)
    for where in (
        "choose",
        "split.share",
        "split.to",
        "shadow.to",
        "shadow.share",
        "shadow.budget",
    ):
        assert where in caught.value.message


@pytest.mark.parametrize(
    ("until", "end"),
    [
        ("", None),
        ("2026-12-31", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2026-12-31T18:00:00Z", datetime(2026, 12, 31, 18, tzinfo=UTC)),
        ("2026-12-31T18:00:00+02:00", datetime(2026, 12, 31, 16, tzinfo=UTC)),
        ("2026-12-31T18:00", datetime(2026, 12, 31, 18, tzinfo=UTC)),
    ],
)
def test_a_split_ends_with_its_day_or_at_its_moment(until: str, end: datetime | None) -> None:
    assert Split("a", 0.5, until=until).until_ms == (None if end is None else end.timestamp() * 1e3)


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
        ({"targets": ["a/b"], "chose": "fastest"}, "chose", "did you mean 'choose'?"),
        ({"targets": ["a/b"], "choose": "magic"}, "choose", "must be one of 'weighted'"),
        ({"targets": ["a/b"], "choose": 3}, "choose", "must be a string"),
        *[
            ({"targets": ["a/b"], way: {**way_said, **wrong}}, where, words)
            for way, way_said, wrong, where, words in (
                ("split", SPLIT, {"to": "c"}, "split.to", "no target of the route is at 'c'"),
                ("split", SPLIT, {"to": "/b"}, "split.to", "a provider's name"),
                ("split", SPLIT, {"to": None}, "split.to", "must not be null"),
                ("split", SPLIT, {"share": 1.01}, "split.share", "between 0.0 and 1.0"),
                ("split", SPLIT, {"share": float("nan")}, "split.share", "between 0.0 and 1.0"),
                ("split", SPLIT, {"share": None}, "split.share", "must not be null"),
                ("split", SPLIT, {"key": "ip"}, "split.key", "must be one of 'tenant'"),
                ("split", SPLIT, {"until": "soon"}, "split.until", "must be a day"),
                ("split", SPLIT, {"until": "2026-02-30"}, "split.until", "must be a day"),
                ("split", SPLIT, {"until": "2026-12-31 18:00"}, "split.until", "must be a day"),
                ("split", SPLIT, {"until": "20261231"}, "split.until", "must be a day"),
                ("split", SPLIT, {"name": "Bad name"}, "split.name", "lower-case letters"),
                ("split", SPLIT, {"weight": 1}, "split.weight", "no parameter of this name"),
                ("shadow", SHADOW, {"to": "c"}, "shadow.to", "a provider's name, a slash"),
                ("shadow", SHADOW, {"to": "engines/m"}, "shadow.to", "not to own engines"),
                ("shadow", SHADOW, {"budget": "20"}, "shadow.budget", "so many requests a day"),
                ("shadow", SHADOW, {"budget": "0/day"}, "shadow.budget", "so many requests a day"),
                ("shadow", SHADOW, {"budget": "1000001/day"}, "shadow.budget", "1000000"),
                ("shadow", SHADOW, {"budget": 20}, "shadow.budget", "must be a string"),
                ("shadow", SHADOW, {"budget": None}, "shadow.budget", "must not be null"),
                ("shadow", SHADOW, {"share": "1"}, "shadow.share", "must be a number"),
                ("shadow", SHADOW, {"keep_text": 1}, "shadow.keep_text", "must be a boolean"),
                ("shadow", SHADOW, {"keep": True}, "shadow.keep", "did you mean 'keep_text'?"),
            )
        ],
        ({"targets": ["a/b"], "split": "a"}, "split", "must be an object"),
        ({"targets": ["a/b"], "shadow": []}, "shadow", "must be an object"),
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
