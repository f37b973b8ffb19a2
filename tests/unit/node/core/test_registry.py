"""The registry: a name is taken once, and a wrong one is answered with the nearest."""

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.registry import Registry


def stocked() -> Registry[int]:
    registry: Registry[int] = Registry("policy")
    registry.add("round_robin", 1)
    registry.add("power_of_two", 2)
    return registry


def test_a_name_gives_its_thing() -> None:
    assert stocked().get("round_robin") == 1


def test_names_are_listed_in_order() -> None:
    assert list(stocked()) == ["power_of_two", "round_robin"]


def test_a_falsy_thing_is_still_a_thing() -> None:
    registry: Registry[int] = Registry("number")
    registry.add("zero", 0)
    assert registry.get("zero") == 0


def test_a_name_is_taken_once() -> None:
    with pytest.raises(SmgError, match="two policys called 'round_robin'") as caught:
        stocked().add("round_robin", 3)
    assert caught.value.kind is ErrorKind.CONFLICT


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        SmgError, match="no policy is called 'round_robbin'; did you mean 'round_robin'"
    ) as caught:
        stocked().get("round_robbin")
    assert caught.value.kind is ErrorKind.NOT_FOUND


def test_a_name_near_nothing_is_answered_with_all() -> None:
    with pytest.raises(SmgError, match="known: power_of_two, round_robin"):
        stocked().get("zzz")
