"""Samples for the house rules: of each rule what it objects to and what it leaves alone.

What is bad is put together here, so that this file itself keeps the rules.
"""

from collections.abc import Mapping
from typing import Final

from support.house import layout, order, reasons, text, words
from support.house.tree import Rule

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
    layout.docstrings_name_the_thing: (
        (PRODUCT, '"""What a sample says of itself."""\n'),
        (PRODUCT, '"""Sample' + " of a sentence that goes on" * 5 + '."""\n'),
        (PRODUCT, '"""Counts what comes in, and gives it back later."""\nclass Probe: ...\n'),
    ),
    layout.names_are_terms: (
        ("node/smg_node/fleet/vigil.py", DOC),
        (PRODUCT, "class Outlook: ...\n"),
        (PRODUCT, "def say_number() -> None: ...\n"),
        (PRODUCT, "class LongWishes: ...\n"),
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
    layout.docstrings_name_the_thing: (
        (PRODUCT, '"""Samples of a worker: taken each second, kept for a minute."""\n'),
        (
            PRODUCT,
            '"""Probe counters: successes and failures in a row."""\nclass ProbeCounter: ...\n',
        ),
        (
            "node/smg_node/fleet/__init__.py",
            '"""Fleet: workers, their models and their health."""\n',
        ),
        (TEST, '"""What becomes of it."""\n'),
    ),
    layout.names_are_terms: (
        (PRODUCT, "class Essay: ...\ndef _say() -> None: ...\ndef stellar() -> None: ...\n"),
        (TEST, "def test_nobody_is_told() -> None: ...\n"),
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
