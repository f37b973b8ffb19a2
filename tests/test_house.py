"""The source is tidy: the house rules of STYLE.md that a machine can check, and each one checked.

A rule that objects to something right gets an entry in EXCEPTIONS, with the reason.
"""

import ast
import gc
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from support.house import order, reasons, text, words
from support.house.text import rooms, unexplained_rooms
from support.house.tree import Finding, Rule, Source, contract, floor_version, sources

RULES: Final[tuple[Rule, ...]] = (*words.RULES, *order.RULES, *reasons.RULES, *text.RULES)

# (rule, file, name or "" for the whole file): why the rule does not hold there.
EXCEPTIONS: Final[Mapping[tuple[str, str, str], str]] = {
    ("names_mean_something", "node/smg_node/wiring/serving_parts.py", "data"): (
        "the data process is one of the two kinds of process of a node (ARCHITECTURE.md)"
    ),
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
#
# What is bad is put together here, so that this file itself keeps the rules.

DOC = '"""What it is for."""\n'
PRODUCT = "node/smg_node/fleet/sample.py"
PURE = "node/smg_node/core/sample.py"
TEST = "tests/unit/test_sample.py"
IGNORE = "# type: " + "ignore"
NOQA = "# no" + "qa"
UNFINISHED = "TO" + "DO"
REGISTRY = "https://py" + "pi.org/simple"
DISK = "/wo" + "rk/main"
PAPERS = "shared" + "/spec/http.md"


def function_of(lines: int) -> str:
    return "def f() -> None:\n" + "    g()\n" * (lines - 1)


BAD: Final[Mapping[Rule, tuple[tuple[str, str], ...]]] = {
    words.modules_say_what_they_are_for: (
        (PRODUCT, "x = 1\n"),
        (PRODUCT, '""""""\n'),
        (PRODUCT, '"""Things"""\n'),
        ("tests/support/sample.py", "x = 1\n"),
    ),
    words.files_are_short: ((PRODUCT, "x = 1\n" * 401), (TEST, "x = 1\n" * 401)),
    words.functions_are_short: (
        (PRODUCT, function_of(61)),
        (PRODUCT, "class A:\n    async " + function_of(61).replace("\n", "\n    ").rstrip()),
    ),
    words.names_mean_something: (
        (PRODUCT, "class WorkerManager: ...\n"),
        (PRODUCT, "def parse_data(): ...\n"),
        (PRODUCT, "class HTTPHandler: ...\n"),
        (PRODUCT, "async def handler(): ...\n"),
        ("node/smg_node/fleet/utils.py", DOC),
        ("tests/support/helpers.py", DOC),
        (TEST, "def make_helper(): ...\n"),
    ),
    words.numbers_have_units: (
        (PRODUCT, "def f(timeout: float) -> None: ...\n"),
        (PRODUCT, "class A:\n    probe_interval: int = 5\n"),
        (PRODUCT, "def f(*, drain_grace: float | None) -> None: ...\n"),
    ),
    words.booleans_are_named: (
        (PRODUCT, "def f(x: int, stream: bool) -> None: ...\n"),
        (PRODUCT, "class A:\n    async def f(self, stream: bool = False) -> None: ...\n"),
    ),
    order.modules_hold_no_state: (
        (PRODUCT, "cache = {}\n"),
        (PRODUCT, "seen: set[str] = set()\n"),
        (PRODUCT, "if True:\n    pending = deque()\n"),
        (TEST, "calls = []\n"),
        (PRODUCT, "current = contextvars.ContextVar('current')\n"),
    ),
    order.tasks_belong_to_a_group: (
        (PRODUCT, "import asyncio\nasyncio.create_task(f())\n"),
        (PRODUCT, "import asyncio as aio\naio.ensure_future(f())\n"),
        (PRODUCT, "from asyncio import create_task\n"),
        (PRODUCT, "asyncio.get_running_loop().create_task(f())\n"),
        (PRODUCT, "self._loop.create_task(f())\n"),
        (PRODUCT, "getattr(asyncio, 'create_task')(f())\n"),
    ),
    order.pure_code_never_iterates_a_set: (
        (PURE, "for x in {1, 2}: f(x)\n"),
        (PURE, "y = [x for x in set(z)]\n"),
        (PURE, "def f(z: frozenset[str]) -> list[str]:\n    return list(z)\n"),
        (PURE, "def f(a, b):\n    left = set(a)\n    return ','.join(left - b)\n"),
        (PURE, "f(*{1, 2})\n"),
        (PURE, "def f():\n    seen: set[int] = make()\n    return tuple(x for x in seen)\n"),
    ),
    order.pure_code_never_waits: ((PURE, "async def f() -> None: ...\n"),),
    reasons.silencing_a_tool_has_a_reason: (
        (PRODUCT, f"x = f()  {IGNORE}\n"),
        (PRODUCT, f"x = f()  {IGNORE}[misc]\n"),
        (PRODUCT, f"x = f()  {NOQA}\n"),
        (PRODUCT, f"x = f()  {NOQA}: B008\n"),
        (PRODUCT, f"x = f()  {NOQA} because it is too loud\n"),
    ),
    reasons.catching_everything_has_a_reason: (
        (PRODUCT, "try: f()\nexcept Exception: g()\n"),
        (PRODUCT, "try: f()\nexcept (ValueError, BaseException) as e:\n    g(e)\n"),
        (PRODUCT, "try: f()\nexcept: g()\n"),
        (PRODUCT, "try: f()\nexcept Exception:  # door\n    g()\n"),
        (PRODUCT, "try: f()\nexcept Exception as e:\n    raise g(e) from e\n"),
    ),
    reasons.tests_are_never_skipped: (
        (TEST, "@pytest.mark." + "skipif(True, reason='x')\ndef test_x(): ...\n"),
        (TEST, "def test_x():\n    pytest." + "skip('no server')\n"),
        (TEST, "pytestmark = pytest.mark." + "xfail\n"),
        (TEST, "from pytest import " + "importorskip\n"),
        (TEST, "@pytest.mark." + "flaky(reruns=3)\ndef test_x(): ...\n"),
    ),
    reasons.nothing_is_left_unwritten: (
        (PRODUCT, "def f() -> None:\n    raise NotImplementedError\n"),
        (PRODUCT, "def f() -> None:\n    raise NotImplementedError('soon')\n"),
    ),
    reasons.generated_words_run_on_the_oldest_library: (
        ("proto/smg_proto/sync_pb2.py", "# Protobuf Python Version: 99.1.0\n"),
        ("proto/smg_proto/sync_pb2.py", "x = 1\n"),
        ("proto/smg_proto/sync_pb2_grpc.py", "GRPC_GENERATED_VERSION = '99.1.0'\n"),
    ),
    text.nothing_is_left_to_do: (
        (PRODUCT, f"# {UNFINISHED}: later\n"),
        ("README.md", f"{UNFINISHED}\n"),
    ),
    text.the_tree_stands_alone: (
        ("Makefile", f"pip install -i {REGISTRY} x\n"),
        (PRODUCT, f"PATH = '{DISK}/x'\n"),
        ("docs/decisions/limits.md", f"as {PAPERS} says\n"),
        ("tests/x.md", "see .." + "/shared/x\n"),
        ("tests/x.md", "in /ho" + "me/someone/x\n"),
    ),
    text.locks_name_no_place: (
        ("requirements.lock", "--index-url x\n"),
        ("requirements-mlx.lock", "x @ file:///x.whl\n"),
        ("uv.lock", "version = 1\n"),
    ),
}

GOOD: Final[Mapping[Rule, tuple[tuple[str, str], ...]]] = {
    words.modules_say_what_they_are_for: ((PRODUCT, DOC), (TEST, "x = 1\n")),
    words.files_are_short: ((PRODUCT, "x = 1\n" * 400), ("requirements.lock", "x\n" * 4000)),
    words.functions_are_short: ((PRODUCT, function_of(60)),),
    words.names_mean_something: (
        (PRODUCT, "class DataProcess: ...\ndef dataset(): ...\ndef information(): ...\n"),
        (PRODUCT, "class A:\n    async def GetModelInfo(self): ...\n"),
        (TEST, "def test_garbage_is_no_data(): ...\n"),
    ),
    words.numbers_have_units: (
        (PRODUCT, "def f(timeout_s: float, interval_ms: int, grace: Grace) -> None: ...\n"),
        (PRODUCT, "def f(message: str, average: float) -> None: ...\n"),
    ),
    words.booleans_are_named: (
        (PRODUCT, "def f(x: int, *, stream: bool) -> bool: ...\n"),
        (PRODUCT, "def _f(stream: bool) -> None: ...\n"),
        (PRODUCT, "class A:\n    @low.setter\n    def low(self, low: bool) -> None: ...\n"),
        (PRODUCT, f"def f(stream: bool) -> None: ...  {NOQA}: FBT001 (jinja calls it)\n"),
    ),
    order.modules_hold_no_state: (
        (PRODUCT, "KNOWN = {}\n_KNOWN = []\nknown: Final = {}\n__all__ = ['x']\nx = (1, 2)\n"),
        (PRODUCT, "def f():\n    seen = set()\n"),
    ),
    order.tasks_belong_to_a_group: (
        (PRODUCT, "async with asyncio.TaskGroup() as group:\n    group.create_task(f())\n"),
        (PRODUCT, "self._tasks.create_task(f())\n"),
    ),
    order.pure_code_never_iterates_a_set: (
        (PURE, "for x in sorted({1, 2}): f(x)\n"),
        (PURE, "def f(z: set[str]) -> int:\n    return len(z) + max(z)\n"),
        (PURE, "y = {x for x in set(z)}\n"),
        (PURE, "def f(z: set[int]) -> None: ...\ndef g(z: list[int]):\n    return list(z)\n"),
        (PRODUCT, "for x in {1, 2}: f(x)\n"),
    ),
    order.pure_code_never_waits: ((PURE, "def f(): ...\n"), (PRODUCT, "async def f(): ...\n")),
    reasons.silencing_a_tool_has_a_reason: (
        (PRODUCT, f"x = f()  {IGNORE}[misc]  # the stubs say object\n"),
        (PRODUCT, f"# Both names are the library's.\nx = f()  {NOQA}: B008, RUF012\n"),
        (PRODUCT, f"x = f()  {NOQA}: B008 (evaluated once, on purpose)\n"),
        (PRODUCT, f"def visit_Name(): ...  {NOQA}: N802\n"),
        (PRODUCT, f"x = '{IGNORE}'\n"),
    ),
    reasons.catching_everything_has_a_reason: (
        (PRODUCT, "try: f()\nexcept Exception:  # a door: any plug-in may fail\n    g()\n"),
        (PRODUCT, "try: f()\nexcept Exception:\n    # The client must hear of it.\n    g()\n"),
        (PRODUCT, "try: f()\nexcept ValueError: g()\n"),
        (PRODUCT, "try: f()\nexcept BaseException:\n    g()\n    raise\n"),
    ),
    reasons.tests_are_never_skipped: (
        (TEST, "@pytest.mark.parametrize('x', [1])\ndef test_x(x): ...\n"),
        (TEST, "tokenizer.decode(ids, skip_special_tokens=True); reader.skip()\n"),
    ),
    reasons.nothing_is_left_unwritten: (
        (PRODUCT, "try: f()\nexcept NotImplementedError: g()\n"),
        (PRODUCT, "def f() -> None: ...\n"),
    ),
    reasons.generated_words_run_on_the_oldest_library: (
        ("proto/smg_proto/sync_pb2.py", "# Protobuf Python Version: 6.33.5\n"),
        ("proto/smg_proto/sync_pb2_grpc.py", "GRPC_GENERATED_VERSION = '1.81.0'\n"),
        (PRODUCT, "x = 1\n"),
    ),
    text.nothing_is_left_to_do: ((PRODUCT, "METHOD = 'todo' # mastodon\n"),),
    text.the_tree_stands_alone: (
        ("README.md", "`/v1/work/x`, `$HOME/root/`, shared/exclusive, $(ROOT)/work/x\n"),
    ),
    text.locks_name_no_place: (
        ("requirements.lock", "httpx==1 \\\n    --hash=sha256:00\n"),
        ("README.md", "https://example.org\n- x\n"),
    ),
}


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


def test_what_the_rules_read_from_pyproject_is_there() -> None:
    assert "smg_node.core" in contract("pure")["source_modules"]
    assert floor_version("protobuf") == (6, 33, 5)
    with pytest.raises(LookupError):
        floor_version("fastokens")


def test_an_exception_excuses_its_name_and_nothing_else() -> None:
    rule = words.names_mean_something
    (excuse,) = (key for key in EXCEPTIONS if key[0] == rule.__name__ and key[2] == "data")
    assert excused(rule, Finding(excuse[1], 1, "", "data"))
    assert not excused(rule, Finding(excuse[1], 1, "", "parse_data"))
    assert not excused(rule, Finding("node/smg_node/other.py", 1, "", "data"))
    assert not excused(words.files_are_short, Finding(excuse[1], 1, "", "data"))


def test_every_sample_is_python() -> None:
    for rule, samples in [*BAD.items(), *GOOD.items()]:
        for path, sample in samples:
            if path.endswith(".py") and rule is not text.nothing_is_left_to_do:
                assert re.search(r"\S", sample)
                ast.parse(sample)
