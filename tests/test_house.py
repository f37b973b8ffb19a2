"""The source is tidy: the house rules of STYLE.md that a machine can check, and each one checked.

A rule that objects to something right gets an entry in EXCEPTIONS, with the reason.
"""

import ast
import gc
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from support.house import layout, order, reasons, text, words
from support.house.samples import BAD, DOC, GOOD
from support.house.text import rooms, unexplained_rooms
from support.house.tree import Finding, Rule, Source, contract, floor_version, sources

RULES: Final[tuple[Rule, ...]] = (
    *words.RULES,
    *layout.RULES,
    *order.RULES,
    *reasons.RULES,
    *text.RULES,
)

# (rule, file, name or "" for the whole file): why the rule does not hold there.
EXCEPTIONS: Final[Mapping[tuple[str, str, str], str]] = {
    ("booleans_are_named", "node/smg_node/prompts/jinja/filters.py", "tojson"): (
        "chat templates call it, by position too"
    ),
    ("booleans_are_named", "node/smg_node/prompts/jinja/filters.py", "indent"): (
        "chat templates call it, by position too"
    ),
    ("tests_are_never_skipped", "tests/support/processes/lab.py", ""): (
        "a laptop without namespaces cannot run the lab; in CI the same is a failure"
    ),
    ("tasks_belong_to_a_group", "node/smg_node/pipeline/pairs/pair_calls.py", ""): (
        "two calls beside each other around a yield, which a TaskGroup cannot hold; awaited in its finally"
    ),
    ("tasks_belong_to_a_group", "node/smg_node/pipeline/generation/event_iterator.py", ""): (
        "an async generator must not yield inside a TaskGroup; it keeps, cancels and awaits its own"
    ),
    ("tasks_belong_to_a_group", "node/smg_node/engines/transport/h2/h2_transport.py", ""): (
        "a transport owns the one task that connects: it catches whatever happens, and closing awaits it"
    ),
    ("tasks_belong_to_a_group", "node/smg_node/http/server/http1_connection.py", ""): (
        "a connection owns its one task: it begins with it, is cancelled with it, and catches whatever it raises"
    ),
}


class House:
    """The tree, and what each rule finds in it: that is looked up once."""

    def __init__(self) -> None:
        self.tree = sources()
        for source in self.tree:
            _ = source.is_python and source.nodes
        self._found: dict[Rule, list[Finding]] = {}

    def findings(self, rule: Rule) -> list[Finding]:
        if rule not in self._found:
            self._found[rule] = [finding for source in self.tree for finding in rule(source)]
        return self._found[rule]


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    # Millions of objects, none of them garbage: looking for some among them takes longer than all the rules do.
    gc.disable()
    try:
        house = House()
        gc.freeze()
    finally:
        gc.enable()
    yield house
    gc.unfreeze()


@pytest.fixture
def tree(house: House) -> list[Source]:
    return house.tree


def excused(rule: Rule, finding: Finding) -> bool:
    places = ((rule.__name__, finding.path, name) for name in (finding.symbol, ""))
    return any(place in EXCEPTIONS for place in places)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_this_rule(rule: Rule, house: House) -> None:
    findings = house.findings(rule)
    objections = sorted(finding for finding in findings if not excused(rule, finding))
    assert not objections, f"\n{rule.__doc__}\n" + "\n".join(map(str, objections))


def test_every_room_is_explained_on_its_floor(tree: list[Source]) -> None:
    missing = list(unexplained_rooms(tree))
    assert not missing, "\n".join(map(str, missing))


def test_no_folder_is_crowded(tree: list[Source]) -> None:
    crowded = list(layout.crowded_folders(tree))
    assert not crowded, "\n".join(map(str, crowded))
    assert all(len(reason.split()) >= 5 for reason in layout.CATALOGUES.values())


def test_every_package_says_what_it_is_for(tree: list[Source]) -> None:
    silent = list(layout.unexplained_packages(tree))
    assert not silent, "\n".join(map(str, silent))


def test_pages_are_short_enough_to_be_read(tree: list[Source]) -> None:
    long = list(layout.oversized_pages(tree))
    assert not long, "\n".join(map(str, long))


def test_pages_name_what_is_there(tree: list[Source]) -> None:
    missing = list(layout.unknown_paths(tree, heads=layout.heads_of(tree)))
    assert not missing, "\n".join(map(str, missing))


def test_every_exception_is_still_needed(house: House) -> None:
    needed = {
        (rule.__name__, finding.path, name)
        for rule in RULES
        for finding in house.findings(rule)
        for name in (finding.symbol, "")
    }
    assert EXCEPTIONS.keys() <= needed
    assert all(len(reason.split()) >= 5 for reason in EXCEPTIONS.values())


def test_the_whole_tree_is_read(tree: list[Source]) -> None:
    paths = {source.path for source in tree}
    assert {"pyproject.toml", "Makefile", "requirements.lock", "tests/test_house.py"} <= paths
    assert {
        "node/smg_node/core/generation/events.py",
        ".ci/run",
        "tools/setup.sh",
        "LICENSE",
    } <= paths
    assert not any(path.startswith((".venv", ".cache", ".git/")) for path in paths)


# ── Each rule fires, and not at everything ───────────────────────────────────


def test_every_rule_has_good_and_bad_examples() -> None:
    assert BAD.keys() == GOOD.keys() == set(RULES)
    assert all(rule.__doc__ for rule in RULES)


@pytest.mark.parametrize(
    ("rule", "path", "sample"),
    [(rule, path, sample) for rule, samples in BAD.items() for path, sample in samples],
)
def test_the_rule_objects_to_what_is_bad(rule: Rule, path: str, sample: str) -> None:
    findings = list(rule(Source(path, sample)))
    assert findings
    assert all(finding.path == path for finding in findings)


@pytest.mark.parametrize(
    ("rule", "path", "sample"),
    [(rule, path, sample) for rule, samples in GOOD.items() for path, sample in samples],
)
def test_the_rule_leaves_alone_what_is_good(rule: Rule, path: str, sample: str) -> None:
    assert list(rule(Source(path, sample))) == []


def test_a_room_without_a_word_is_found() -> None:
    house = [
        Source("node/README.md", "| `core/` | nouns |\n| `cli` | |\n"),
        Source("node/smg_node/__init__.py", DOC),
        Source("node/smg_node/core/x.py", DOC),
        Source("node/smg_node/cli.py", DOC),
        Source("node/smg_node/attic/x.py", DOC),
        Source("chaos/smg_chaos/__init__.py", DOC),
        Source("chaos/smg_chaos/bench.py", DOC),
        Source("tests/README.md", "`unit/` `conftest.py`\n"),
        Source("tests/unit/x.py", DOC),
        Source("tests/conftest.py", DOC),
    ]
    assert rooms(house)["node"] == {"core", "cli", "attic"}
    assert [str(finding) for finding in unexplained_rooms(house)] == [
        "chaos/README.md:1: this floor has no README",
        "node/README.md:1: says nothing about `attic`",
    ]


def test_a_crowded_folder_is_found_and_a_catalogue_is_none() -> None:
    def folder(path: str, modules: int) -> list[Source]:
        return [Source(f"{path}/m{number}.py", DOC) for number in range(modules)]

    full = folder("node/smg_node/fleet", 15)
    assert not list(layout.crowded_folders([*full, Source("node/smg_node/fleet/__init__.py", DOC)]))
    assert list(layout.crowded_folders([*full, Source("node/smg_node/fleet/more.py", DOC)]))
    assert not list(layout.crowded_folders(folder("node/smg_node/parsers/tools", 60)))
    assert not list(layout.crowded_folders(folder("tests/support/http", 20)))
    assert list(layout.crowded_folders(folder("tests/support/http", 21)))
    assert list(layout.crowded_folders(folder("tests/unit/node/http", 16)))


def test_a_package_that_says_nothing_is_found() -> None:
    good = [
        Source("node/smg_node/__init__.py", DOC),
        Source("node/smg_node/fleet/__init__.py", '"""Fleet: workers and models."""\n'),
        Source("node/smg_node/fleet/worker.py", DOC),
    ]
    assert not list(layout.unexplained_packages(good))
    assert list(layout.unexplained_packages([good[0], good[2]]))
    short = Source("node/smg_node/fleet/__init__.py", '"""Fleet."""\n')
    assert list(layout.unexplained_packages([good[0], short, good[2]]))


def test_a_page_that_is_too_long_or_too_wide_is_found() -> None:
    assert not list(layout.oversized_pages([Source("ARCHITECTURE.md", f"{'x' * 120}\n" * 300)]))
    assert list(layout.oversized_pages([Source("ARCHITECTURE.md", "x\n" * 301)]))
    assert list(layout.oversized_pages([Source("ARCHITECTURE.md", "x" * 121)]))


def test_a_path_of_nothing_on_a_page_is_found() -> None:
    module = Source("node/smg_node/fleet/health/probe.py", DOC)
    heads = layout.heads_of([module])
    assert {"node", "smg_node", "fleet"} <= heads

    def missing(text: str, page: str = "ARCHITECTURE.md") -> list[Finding]:
        return list(layout.unknown_paths([module, Source(page, text)], heads=heads))

    assert not missing(
        "`fleet/health/probe`, `fleet/health/`, `node/smg_node/fleet/health/probe.py`"
    )
    assert not missing("`GET /v1/models`, `prefill/decode`, `a/b`")
    assert missing("see `fleet/health/vigil`")
    assert missing("see `node/smg_node/fleet/gone.py`", "docs/limits.md")
    assert not missing("see `fleet/health/vigil`", "CHANGELOG.md")
    assert not missing("```\nsee `fleet/health/vigil`\n```\n")


def test_what_the_rules_read_from_pyproject_is_there() -> None:
    assert "smg_node.core" in contract("pure")["source_modules"]
    assert floor_version("protobuf") == (6, 33, 5)
    with pytest.raises(LookupError):
        floor_version("fastokens")


def test_an_exception_excuses_its_name_and_nothing_else() -> None:
    rule = words.booleans_are_named
    (excuse,) = (key for key in EXCEPTIONS if key[0] == rule.__name__ and key[2] == "indent")
    assert excused(rule, Finding(excuse[1], 1, "", "indent"))
    assert not excused(rule, Finding(excuse[1], 1, "", "other"))
    assert not excused(rule, Finding("node/smg_node/other.py", 1, "", "indent"))
    assert not excused(words.files_are_short, Finding(excuse[1], 1, "", "indent"))


def test_every_sample_is_python() -> None:
    for rule, samples in [*BAD.items(), *GOOD.items()]:
        for path, sample in samples:
            if path.endswith(".py") and rule is not text.nothing_is_left_to_do:
                assert re.search(r"\S", sample)
                ast.parse(sample)
