"""What every test may ask for."""

import ast
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from support.processes.mlx_engine import MlxEngine, MlxEngines
from support.tools.example_counts import LONG_VARIABLE, example_count
from support.tools.transcripts import REWRITE_VARIABLE

BY_HAND: Final = tuple(Path(__file__).parent / room for room in ("engines", "kube"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="replace the outputs in tests/transcripts by what the code says now",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="run the tests that are marked as long and all examples of property tests, and no others",
    )
    parser.addoption(
        "--churn-s",
        type=float,
        default=120.0,
        help="seconds for which pods change in the long test of that; an hour is what discovery is held to",
    )


def pytest_configure(config: pytest.Config) -> None:
    # The contract of stores is written in support, and says what differs like any other test.
    pytest.register_assert_rewrite("support.store_contract")
    # How long an example takes says more of the machine than of the code.
    if config.getoption("--long"):
        os.environ[LONG_VARIABLE] = "1"
    settings.register_profile(
        "house",
        settings(),
        deadline=None,
        max_examples=example_count(settings().max_examples),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("house")
    # An environment variable, because the runner is called far from any fixture; removed first,
    # so that a forgotten one in the shell cannot hide a difference.
    os.environ.pop(REWRITE_VARIABLE, None)
    if config.getoption("--rewrite"):
        os.environ[REWRITE_VARIABLE] = "1"
    # A shell starts what runs in its background deaf to Ctrl-C, which programs that tests start would inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Engines of gigabytes that start for a minute, a server that is built for ten: theirs are run when somebody names
    # them (`make test-engines`, `make kube-check`).
    if collection_path not in BY_HAND:
        return None
    named = [config.invocation_params.dir / one.partition("::")[0] for one in config.args]
    return None if any(one.resolve().is_relative_to(collection_path) for one in named) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_wanted = _is_for_long_runs if config.getoption("--long") else _is_for_each_change
    others = [item for item in items if not is_wanted(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if is_wanted(item)]
    # Files that start servers or live through hours of virtual time come first: a long file that
    # is begun last is a time in which one core waits for the other.
    items.sort(key=lambda item: not {"integration", "simulation"} & set(item.path.parts))


def _is_for_each_change(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is None


def _is_for_long_runs(item: pytest.Item) -> bool:
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return is_property or not _is_for_each_change(item)


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> Sequence[str]:
    """Say what long tests cover, a line for each file."""
    if not config.getoption("--long"):
        return ()
    counts = Counter(item.path for item in items)
    return [
        f"{path.relative_to(config.rootpath)} ({count}): {_first_line(path)}"
        for path, count in counts.items()
    ]


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_bytes())) or "").strip().partition("\n")[0]


@pytest.fixture(scope="session")
def mlx_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlxEngines]:
    """Real engines by the name of their script, each started once per test process."""
    with ExitStack() as stack:
        yield MlxEngines(tmp_path_factory.mktemp("mlx"), stack)


@pytest.fixture(scope="session")
def mlx(mlx_engines: MlxEngines) -> MlxEngine:
    """The real engine that says the plain text."""
    return mlx_engines.saying("plain")
