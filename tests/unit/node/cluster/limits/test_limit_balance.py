"""What is left of a limit, and what is not to be had: each reason by itself, and nothing lost or counted twice."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smg_mesh.escrow.audit.report import Report
from smg_node.cluster.limits.limit_balance import Balance, Sight, balance_of
from smg_node.cluster.limits.limit_totals import Asked, add_up, inexact_reasons

THREE = ("a", "b", "c")
KEY = "tenant=t#requests/60000"


def report(name: str = "b", **fields: Any) -> Report:
    """What one of three nodes says of 600 a minute, twenty seconds into it; a is the owner."""
    owns = name == "a"
    usual: dict[str, Any] = {
        "key": KEY,
        "window": 7,
        "amount": 600,
        "state": "exact",
        "owner": "a",
        "term": 3 if owns else 0,
        "roster": THREE,
        "roster_version": 2,
        "minted": 300 if owns else -1,
        "pool": 300 if owns else -1,
        "given": (),
        "standing": 33,
        "borrowed": 0,
        "spent": 0,
        "left": 33,
        "debt": 0,
        "not_adopted": (),
        "right": 100,
        "coming": 67,
        "made": 300 if owns else -1,
    }
    return Report(**{**usual, **fields})


def seen(
    *reports: tuple[str, Mapping[str, Any]],
    answered: Sequence[str] = THREE,
    living: Sequence[str] = THREE,
    amount: int = 600,
    windowless: bool = False,
) -> Balance:
    said = {name: report(name, **fields) for name, fields in reports}
    owner = next((one for one in said.values() if one.term), None)
    return balance_of(Sight(amount, windowless, said, owner, answered, living))


def told(balance: Balance) -> list[tuple[str, str, int]]:
    return [(one.reason, one.node, one.amount) for one in balance.unavailable]


def test_all_of_a_limit_that_nobody_used_can_be_had() -> None:
    assert seen(("a", {}), ("b", {}), ("c", {})) == Balance(600, 0, [])


def test_what_quiet_nodes_have_and_will_have_can_be_had() -> None:
    busy = {"given": (("a", 88),), "pool": 212, "received": ((3, 88),), "spent": 121, "left": 0}
    assert seen(("a", busy), ("b", {}), ("c", {})) == Balance(479, 0, [])
    assert seen(("a", busy)) == Balance(479, 0, []), "nodes that answered and do not use it"


@pytest.mark.parametrize(("living", "reason"), [(("a", "b"), "dead"), (("a", "b", "c"), "silent")])
def test_what_stands_with_a_node_that_is_not_heard_is_with_that_node(
    living: Sequence[str], reason: str
) -> None:
    owner = {"spent": 40, "left": 0, "coming": 60, "given": (("a", 0), ("c", 20)), "pool": 280}
    left = seen(("a", owner), ("b", {}), answered=("a", "b"), living=living)
    assert told(left) == [(reason, "c", 120)]
    assert (left.remaining, left.over) == (440, 0)


def test_what_a_node_released_before_it_died_is_not_with_it() -> None:
    owner = {"spent": 40, "left": 0, "coming": 60, "pool": 370}
    left = seen(("a", owner), ("b", {}), answered=("a", "b"), living=("a", "b"))
    assert told(left) == [("dead", "c", 30)]
    assert left.remaining == 530


def test_what_an_owner_took_with_it_is_lost_and_what_nodes_have_of_it_is_not() -> None:
    owner = {"minted": 50, "made": 20, "pool": 270, "given": ()}
    left = seen(("a", owner), ("b", {"received": ((2, 10),), "left": 43}), ("c", {}))
    assert told(left) == [("owner_lost", "", 20)]
    assert left.remaining == 580


def test_what_stood_with_a_node_that_restarted_is_lost() -> None:
    owner = {"given": (("b", 25),), "stranded": (("b", 20),), "pool": 275}
    again = {"standing": 0, "left": 0, "missing": 33, "received": ((3, 5),)}
    left = seen(("a", owner), ("b", {**again, "left": 5}), ("c", {}))
    assert told(left) == [("restarted", "b", 53)]
    assert left.remaining == 547


def test_what_is_kept_for_nodes_that_have_not_heard_of_a_change_is_said() -> None:
    left = seen(("a", {"pool": 230, "withheld": 70}), ("b", {}), ("c", {}))
    assert told(left) == [("withheld", "", 70)]
    assert left.unavailable[0].text.startswith("kept back until all nodes")


def test_a_newcomer_has_nothing_yet_that_could_be_missing() -> None:
    new = {"right": 100, "newcomers": ("c",), "pool": 300, "withheld": 100}
    left = seen(("a", new), ("b", {}), answered=("a", "b"), living=("a", "b"))
    assert told(left) == [("withheld", "", 100)]


def test_in_a_minority_only_what_stands_here_can_be_had() -> None:
    alone = {"term": 0, "owner": "", "pool": -1, "minted": -1, "made": -1, "state": "standing"}
    left = seen(("b", {**alone, "spent": 20, "left": 13}), answered=("b",), living=("b",))
    assert left.remaining == 80
    assert told(left) == [("dead", "a", 100), ("dead", "c", 100), ("no_owner", "", 300)]
    assert left.unavailable[-1].text.endswith("only 1 of 3 nodes are heard here, no majority")


def test_before_nodes_have_agreed_on_who_votes_the_reason_is_that() -> None:
    early = {"term": 0, "owner": "", "pool": -1, "roster": (), "right": 0, "left": 0, "coming": 0}
    left = seen(("b", early))
    assert told(left) == [("no_owner", "", 600)]
    assert left.unavailable[0].text.endswith("have not yet agreed on who votes")


def test_without_an_owner_a_majority_elects_one_when_somebody_asks() -> None:
    nobody = {"term": 0, "owner": "", "pool": -1, "minted": -1, "made": -1}
    left = seen(("a", nobody), ("b", nobody), answered=("a", "b"), living=("a", "b"))
    assert told(left) == [("dead", "c", 100)]
    assert left.remaining == 500


def test_a_side_that_goes_on_alone_has_the_whole_limit() -> None:
    alone = {"term": 0, "pool": -1, "state": "alone", "spent": 10}
    assert seen(("b", alone), answered=("b",), living=("b",)) == Balance(590, 0, [])


def test_more_than_the_limit_is_said_to_be_more_and_nothing_is_left() -> None:
    left = seen(("a", {"spent": 400, "pool": 0}), ("b", {"spent": 230}), ("c", {}))
    assert left == Balance(0, 30, [])


def test_of_places_at_a_time_a_dead_node_has_its_part() -> None:
    places = {"right": 0, "coming": 0, "term": 0, "pool": -1, "amount": 8}
    left = seen(
        ("a", {**places, "spent": 3, "left": 0}),
        answered=("a", "b"),
        living=("a", "b"),
        amount=8,
        windowless=True,
    )
    assert told(left) == [("dead", "c", 2)]
    assert left.remaining == 3


def test_a_node_of_an_older_version_says_less_and_nothing_is_made_up() -> None:
    older = {"right": 0, "coming": 0, "made": -1}
    left = seen(("a", {**older, "spent": 50, "minted": 90}), ("b", older), ("c", older))
    assert left == Balance(550, 0, [])


# ── The sums of all nodes, and what may be missing in them ───────────────────


def summed(
    reports: Mapping[str, Report],
    *,
    answered: Sequence[str] = THREE,
    behind: Sequence[str] = (),
    silent: Mapping[str, str] | None = None,
    cut: int = 0,
) -> tuple[Any, list[str]]:
    living = [*answered, *(silent or {})]
    asked = Asked(answered, living, behind)
    (use,) = add_up({name: [one] for name, one in reports.items()}, asked)
    return use, inexact_reasons([use], silent=silent or {}, cut=cut)


def test_an_idle_node_does_not_make_the_sum_inexact() -> None:
    quiet = report(state="standing", standing=0, left=0, spent=0, coming=100)
    use, reasons = summed({"a": report("a", spent=33, left=0), "b": quiet})
    assert (use.name, use.state, use.remaining) == ("tenant=t#requests/minute", "exact", 567)
    assert reasons == []


def test_every_doubt_is_told_by_its_node_and_once() -> None:
    owner = report("a", spent=5, left=28, not_adopted=("b",), pool=200)
    _, reasons = summed(
        {"a": owner, "b": report(window=6)},
        answered=("a", "b"),
        behind=("b",),
        silent={"c": "no answer within 2 s"},
        cut=4,
    )
    assert reasons == [
        "node c does not answer: no answer within 2 s",
        "node b is not known to go by the present definitions",
        "the clock of node b is in another window of tenant=t#requests/minute: not counted",
        "4 more are in use and not shown",
    ]


def test_what_a_dead_node_spent_is_not_counted_and_that_is_said() -> None:
    owner = report("a", spent=33, left=0)
    use, reasons = summed({"a": owner, "b": report()}, answered=("a", "b"))
    assert use.unavailable[0].amount == 67 + 33
    assert reasons == ["node c is dead or cut off: what it spent is not counted"]


def test_without_an_owner_what_was_spent_is_not_sure_and_what_was_not_is() -> None:
    nobody: dict[str, Any] = {"term": 0, "owner": "", "pool": -1, "minted": -1, "made": -1}
    spent = {name: report(name, **nobody, spent=33, left=0) for name in THREE}
    unspent = {name: report(name, **nobody) for name in THREE}
    name = "tenant=t#requests/minute"
    assert summed(spent)[1] == [f"{name} has no owner now: what one before had left is not known"]
    assert summed(unspent)[1] == []


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("#requests/60000", "global#requests/minute"),
        ("tenant=a,model=m#tokens/86400000", "tenant=a,model=m#tokens/day"),
        ("tenant=a#cost/10000", "tenant=a#cost/10s"),
        ("tenant=é#concurrent/0", "tenant=é#concurrent"),
    ],
)
def test_a_limit_is_called_what_clients_read_with_its_window_in_words(key: str, name: str) -> None:
    use, _ = summed({"a": report("a", key=key)})
    assert use.name == name
