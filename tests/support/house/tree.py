"""The source as the house rules see it: files, their text and their syntax."""

import ast
import io
import os
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).parents[3]
FLOORS: Final = ("node", "mesh", "storage", "proto", "migrations", "chaos")
_TEXT: Final = frozenset(
    [
        ".cfg",
        ".css",
        ".dockerfile",
        ".html",
        ".in",
        ".jinja",
        ".json",
        ".lock",
        ".md",
        ".proto",
        ".py",
        ".pyi",
        ".sh",
        ".sql",
        ".toml",
        ".txt",
        ".typed",
        ".yaml",
        ".yml",
    ]
)
_TEXT_NAMES: Final = frozenset({"Makefile", "Dockerfile", "LICENSE", "run", ".gitignore"})


@dataclass(frozen=True)
class Source:
    """One file: its path from the top of the project, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of a Python file."""
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the syntax tree, as `ast.walk` goes through it; every rule looks at it."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def comments(self) -> dict[int, str]:
        """Line number to the comment on it."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.splitlines()

    @property
    def is_python(self) -> bool:
        """Whether it is Python that people write: not generated, not a stub."""
        return self.path.endswith(".py") and not self.is_generated

    @property
    def is_generated(self) -> bool:
        """Whether grpcio-tools wrote it."""
        return self.path.endswith(("_pb2.py", "_pb2_grpc.py", "_pb2.pyi"))

    @property
    def is_product(self) -> bool:
        """Whether it is part of what is installed, not a test."""
        return self.is_python and self.path.split("/")[0] in FLOORS

    @property
    def is_test(self) -> bool:
        """Whether it is a test, or serves tests."""
        return self.is_python and self.path.startswith("tests/")

    @property
    def module(self) -> str:
        """The dotted name of a product module."""
        parts = self.path.removesuffix(".py").split("/")[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True, order=True)
class Finding:
    """Something a rule objects to. `symbol` is the name it is about, if it is about a name."""

    path: str
    line: int
    why: str
    symbol: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}"


Rule: TypeAlias = Callable[[Source], Iterator[Finding]]


def sources(root: Path = ROOT) -> list[Source]:
    """Return every text file of the project, sorted; what .gitignore keeps out is left out."""
    ignored = {line.strip("/ ") for line in (root / ".gitignore").read_text().splitlines() if line}
    found: list[Source] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if name not in ignored and name != ".git" and not name.endswith(".egg-info")
        )
        for name in sorted(names):
            path = Path(folder, name)
            if (path.suffix in _TEXT or name in _TEXT_NAMES) and not path.is_symlink():
                text = path.read_text(encoding="utf-8")
                found.append(Source(path.relative_to(root).as_posix(), text))
    return found


@cache
def pyproject(root: Path = ROOT) -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def contract(name: str) -> dict[str, Any]:
    """Return the import contract with that id."""
    (found,) = (c for c in pyproject()["tool"]["importlinter"]["contracts"] if c["id"] == name)
    assert isinstance(found, dict)
    return found


def floor_version(package: str) -> tuple[int, ...]:
    """Return the oldest version of `package` that pyproject.toml allows."""
    for requirement in pyproject()["project"]["dependencies"]:
        name, _, rest = str(requirement).partition(">=")
        if name == package:
            return tuple(int(part) for part in rest.split(",")[0].split("."))
    raise LookupError(f"{package} has no floor in pyproject.toml")


Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: Source) -> Iterator[Function]:
    """Yield every function and method of a Python file."""
    if source.is_python:
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def last_name(node: ast.expr | None) -> str:
    """Return `c` of `a.b.c`, and the empty string for what is not a name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
