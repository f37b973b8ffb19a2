"""Faults: their grammar, and the requests they hit."""

from typing import Any

import pytest

from smg_chaos.vendor.errors.vendor_error import Reason
from smg_chaos.vendor.faults.fault import FAULTS, Faults, fault_table, parse_fault


@pytest.mark.parametrize("name", FAULTS)
def test_a_name_alone_is_a_fault_with_its_defaults(name: str) -> None:
    assert dict(parse_fault(name).values) == dict(FAULTS[name].defaults)
    assert name in fault_table()


def test_values_are_read_by_their_types() -> None:
    fault = parse_fault("status:reason=rate,retry_after=2.5,code=418,every=3,key=k,model=m")
    assert fault.reason() is Reason.RATE
    assert dict(fault.values) == {
        "reason": "rate",
        "retry_after": 2.5,
        "code": 418,
        "every": 3,
        "key": "k",
        "model": "m",
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("cutt", "did you mean 'cut'"),
        ("cut:aftr=1", "did you mean 'after'"),
        ("cut:after", "after needs a value"),
        ("cut:after=x", "is not a int"),
        ("cut:after=-1", "must not be negative"),
        ("cut:every=0", "every counts from 1"),
        ("delay:seconds=inf", "must not be negative or infinite"),
        ("status:reason=rated", "did you mean 'rate'"),
    ],
)
def test_a_wrong_spec_is_told_what_is_wrong(spec: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_fault(spec)


@pytest.mark.parametrize(
    ("spec", "hits"),
    [
        ("html", [1, 2, 3, 4, 5, 6]),
        ("html:request=3", [3]),
        ("html:every=2", [2, 4, 6]),
        ("html:every=2,times=2", [2, 4]),
        ("html:model=b", [2, 4, 6]),
        ("html:key=k3", [3, 6]),
        ("html:chance=0", []),
        ("html:chance=1", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_fault_hits_the_requests_it_is_meant_for(spec: str, hits: list[int]) -> None:
    faults = Faults([spec], seed=1)
    got = [
        number
        for number in range(1, 7)
        if faults.pick(number, "ab"[number % 2 == 0], f"k{number % 3 or 3}")
    ]
    assert got == hits
    assert faults.told()["hits"] == ({"html": len(hits)} if hits else {})


def test_chance_is_the_same_for_the_same_seed() -> None:
    def hits(seed: int) -> list[bool]:
        faults = Faults(["cut:chance=0.5"], seed)
        return [faults.pick(number, "m", "k") is not None for number in range(50)]

    assert hits(1) == hits(1) != hits(2)
    assert 10 < sum(hits(1)) < 40


def test_the_first_that_hits_counts_and_they_are_replaced_as_a_whole() -> None:
    faults = Faults(["html:request=1", "cut"], seed=1)
    names: list[Any] = [getattr(faults.pick(number, "m", "k"), "name", None) for number in (1, 2)]
    assert names == ["html", "cut"]
    with pytest.raises(ValueError, match="no fault is called"):
        faults.set(["hang", "nothing"])
    assert [row["name"] for row in faults.told()["faults"]] == ["html", "cut"]
    faults.set([])
    assert faults.pick(3, "m", "k") is None
