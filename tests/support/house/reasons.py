"""House rules about exceptions to rules: they have a reason, or there are none."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from support.house.tree import Finding, Rule, Source, floor_version, last_name

_CODES: Final = re.compile(
    r"^(?:\[[\w, -]+\]|:\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)(?P<rest>.*)", re.DOTALL
)


_SILENCING: Final = re.compile(r"#\s*(?:type:\s*ignore|noqa)\b(?P<after>.*)")

# A function that is not called in lower case has its name from the library that calls it.
_SELF_EVIDENT: Final = frozenset({"N802"})


def silencing_a_tool_has_a_reason(source: Source) -> Iterator[Finding]:
    """`type: ignore` and `noqa` name what they silence, and say why beside it or above it."""
    if not source.is_python or not _SILENCING.search(source.text):
        return  # and its comments need not be told from its strings
    for line, comment in source.comments.items():
        found = _SILENCING.search(comment)
        if not found:
            continue
        codes = _CODES.match(found["after"])
        if not codes:
            yield Finding(source.path, line, "silences everything: name what")
        elif found["after"].strip(": ") in _SELF_EVIDENT:
            continue
        elif not (_has_user_text(codes["rest"]) or _comment_above(source, line)):
            yield Finding(source.path, line, "silences a tool and does not say why")


def catching_everything_has_a_reason(source: Source) -> Iterator[Finding]:
    """Only a door may catch all there is, and it says why it is one.

    What cleans up and raises the same again is no door.
    """
    if not source.is_python:
        return
    for node in source.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        everything = any(k is None or last_name(k) in ("Exception", "BaseException") for k in kinds)
        if not everything:
            continue
        assert node.end_lineno is not None
        inside = range(node.lineno, node.end_lineno + 1)
        said = any(_has_user_text(source.comments.get(line, "")) for line in inside)
        last = node.body[-1]
        cleans_up = isinstance(last, ast.Raise) and last.exc is None
        if not cleans_up and not said and not _comment_above(source, node.lineno):
            yield Finding(source.path, node.lineno, "catches everything and does not say why")


def _has_user_text(comment: str) -> bool:
    return len(re.findall(r"[^\W\d_]+", comment)) >= 2


def _comment_above(source: Source, line: int) -> bool:
    above = source.lines[line - 2].strip() if line >= 2 else ""
    return above.startswith("#") and _has_user_text(above)


_EVASIONS: Final = frozenset(
    ["skip", "skipif", "xfail", "importorskip", "skipTest", "expectedFailure", "flaky"]
)


def tests_are_never_skipped(source: Source) -> Iterator[Finding]:
    """A test that cannot run is a failure; one that fails is mended, not repeated."""
    if not source.is_test:
        return
    for node in source.nodes:
        evades = (
            isinstance(node, ast.Attribute)
            and node.attr in _EVASIONS
            and ast.unparse(node.value).split(".")[0] in ("pytest", "unittest", "mark", "self")
        ) or (
            isinstance(node, ast.ImportFrom)
            and node.module in ("pytest", "unittest")
            and any(alias.name in _EVASIONS for alias in node.names)
        )
        if evades:
            yield Finding(source.path, getattr(node, "lineno", 1), "a test is skipped or excused")


def nothing_is_left_unwritten(source: Source) -> Iterator[Finding]:
    """No function of the product is there only to say that it is not."""
    if source.is_product:
        for node in source.nodes:
            if isinstance(node, ast.Raise) and node.exc is not None:
                raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                if last_name(raised) == "NotImplementedError":
                    yield Finding(source.path, node.lineno, "a stub: write it, or leave it out")


def generated_words_run_on_the_oldest_library(source: Source) -> Iterator[Finding]:
    """Generated code refuses libraries older than its generator's: generate with the floor's."""
    for suffix, pattern, package in (
        ("_pb2.py", r"Protobuf Python Version: ([\d.]+)", "protobuf"),
        ("_pb2_grpc.py", r"GRPC_GENERATED_VERSION = '([\d.]+)'", "grpcio"),
    ):
        if not source.path.endswith(suffix):
            continue
        found = re.search(pattern, source.text)
        if not found:
            yield Finding(source.path, 1, "does not say which version generated it")
        elif _padded(found[1].split(".")) > _padded(list(map(str, floor_version(package)))):
            why = f"was generated for {package} {found[1]}, newer than the oldest we allow"
            yield Finding(source.path, 1, why)


def _padded(version: list[str]) -> tuple[int, ...]:
    return (*map(int, version), 0, 0, 0)[:3]


RULES: Final[tuple[Rule, ...]] = (
    silencing_a_tool_has_a_reason,
    catching_everything_has_a_reason,
    tests_are_never_skipped,
    nothing_is_left_unwritten,
    generated_words_run_on_the_oldest_library,
)
