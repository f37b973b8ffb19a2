"""House rules about the layout: sizes of folders, packages, names of the field, and documents that name real files."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from support.house.tree import FLOORS, Finding, Rule, Source

FOLDER_MODULES_MAX: Final = 15
SUPPORT_MODULES_MAX: Final = 20
CATALOGUES: Final[Mapping[str, str]] = {
    "node/smg_node/parsers/tools": "one file a family of models: a parser is found by lying there",
    "node/smg_node/config/sections": "one file a section of the settings, in the order of their page",
}
"""Folders of any size: one file for each plug-in of one interface, and why."""

OPENING_SENTENCE_MAX: Final = 120
_OPENERS: Final = frozenset(
    [
        "what",
        "who",
        "how",
        "which",
        "whether",
        "where",
        "when",
        "why",
        "it",
        "there",
        "whose",
        "whom",
        "is",
        "are",
        "does",
        "do",
        "has",
    ]
)
_RIDDLES: Final = frozenset(
    [
        "afterlife",
        "alike",
        "apart",
        "around",
        "burial",
        "caring",
        "carrier",
        "desk",
        "doubt",
        "ear",
        "elsewhere",
        "everywhere",
        "farewell",
        "fold",
        "foretelling",
        "foretold",
        "ground",
        "halfway",
        "heard",
        "hearing",
        "insisting",
        "keeping",
        "nursery",
        "outlook",
        "parcel",
        "postman",
        "retold",
        "said",
        "say",
        "saying",
        "sheet",
        "shelf",
        "sieve",
        "spoken",
        "story",
        "teller",
        "telling",
        "tender",
        "told",
        "unheard",
        "unsaid",
        "unwritten",
        "vigil",
        "voice",
        "whereabouts",
        "wish",
        "wished",
    ]
)
"""Words of an older tree that no reader could guess a file's content from."""
_NO_PACKAGES: Final = frozenset({"migrations/smg_migrations/versions"})
"""Folders of modules that are found by path, as Alembic finds versions, and never imported by name."""
_NAMED_FLOORS: Final = ("node/", "mesh/", "storage/", "proto/", "migrations/")
_LETTERS_SHARED: Final = 4

PAGE_SIZES: Final[Mapping[str, tuple[int, int]]] = {
    "README.md": (120, 160),
    "ARCHITECTURE.md": (300, 120),
    "chaos/README.md": (80, 200),
}
"""Page to its most lines and most columns."""
_PATH: Final = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)`")
_PACKAGES: Final = tuple(f"{floor}/smg_{floor}/" for floor in FLOORS)


def words_of(name: str) -> list[str]:
    """Return the lower-case words of a `snake_case` or `CamelCase` name."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return [word for word in spaced.lower().split("_") if word]


def _shares(word: str, name: str) -> bool:
    """Whether a word of a sentence and a word of a name begin alike, by four letters or the whole name."""
    letters = min(_LETTERS_SHARED, len(name))
    return word[:letters] == name[:letters]


def _stem(source: Source) -> str:
    path = PurePosixPath(source.path)
    return path.parent.name if path.stem == "__init__" else path.stem


def _public(source: Source) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in source.tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not node.name.startswith("_"):
            yield node


def docstrings_name_the_thing(source: Source) -> Iterator[Finding]:
    """A module's docstring begins with the thing: a noun phrase with a word of the file's name or of a public class.

    Its first sentence has at most 120 characters, and never opens with What, Who, How and the like.
    """
    if not source.is_product:
        return
    paragraph = (ast.get_docstring(source.tree) or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[.!?])\s", paragraph)[0]
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+", sentence)]
    if not words:
        return
    if words[0] in _OPENERS:
        yield Finding(source.path, 1, f"opens with {words[0]!r} instead of the thing")
    if len(sentence) > OPENING_SENTENCE_MAX:
        yield Finding(source.path, 1, f"a first sentence of {len(sentence)} characters")
    names = words_of(_stem(source))
    for node in _public(source):
        if isinstance(node, ast.ClassDef):
            names += words_of(node.name)
    if not any(_shares(word, name) for word in words[:6] for name in names):
        yield Finding(source.path, 1, "its first six words name neither the file nor a class in it")


def names_are_terms(source: Source) -> Iterator[Finding]:
    """Modules, public classes and functions have the terms of their field, none of the riddles of an older tree."""
    if not source.is_product or not source.path.startswith(_NAMED_FLOORS):
        return
    names = [(1, _stem(source)), *((node.lineno, node.name) for node in _public(source))]
    for line, name in names:
        for word in words_of(name):
            if not _RIDDLES.isdisjoint((word, word.removesuffix("s"), word.removesuffix("es"))):
                yield Finding(source.path, line, f"{name}: {word!r} is a riddle; which term?", name)


RULES: Final[tuple[Rule, ...]] = (docstrings_name_the_thing, names_are_terms)


def crowded_folders(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield folders with more modules than a reader takes in at a glance, catalogues aside."""
    count = Counter(
        str(PurePosixPath(source.path).parent)
        for source in sources
        if source.path.endswith(".py")
        and not source.is_generated
        and PurePosixPath(source.path).name not in ("__init__.py", "conftest.py")
    )
    for folder, modules in sorted(count.items()):
        most = SUPPORT_MODULES_MAX if folder.startswith("tests/support") else FOLDER_MODULES_MAX
        if modules > most and folder not in CATALOGUES:
            yield Finding(folder, 1, f"{modules} modules; {most} is the wall")


def unexplained_packages(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield folders of the product without an `__init__` that says in three words or more what they are for."""
    texts = {source.path: source for source in sources}
    folders = {
        str(parent)
        for source in sources
        if source.is_product
        for parent in PurePosixPath(source.path).parents
        if len(parent.parts) >= 2
    } - _NO_PACKAGES
    for folder in sorted(folders):
        source = texts.get(f"{folder}/__init__.py")
        said = ast.get_docstring(source.tree) if source is not None else None
        if said is None or len(said.split()) < 3:
            yield Finding(f"{folder}/__init__.py", 1, "does not say what the folder is for")


def oversized_pages(sources: Sequence[Source]) -> Iterator[Finding]:
    """Yield the pages that are longer or wider than PAGE_SIZES has it."""
    for source in sources:
        if source.path in PAGE_SIZES:
            lines, columns = PAGE_SIZES[source.path]
            if len(source.lines) > lines:
                yield Finding(source.path, lines, f"{len(source.lines)} lines; {lines} is the wall")
            for number, line in enumerate(source.lines, 1):
                if len(line) > columns:
                    why = f"{len(line)} columns; {columns} is the wall"
                    yield Finding(source.path, number, why)


def unknown_paths(sources: Sequence[Source], *, heads: frozenset[str]) -> Iterator[Finding]:
    """Yield paths in back-quotes on pages that nothing in the tree has.

    A path counts where it begins with one of `heads`: top-level folders and rooms. It may leave out its floor's
    package and `.py`, so `pipeline/placement/eligibility` is `node/smg_node/pipeline/placement/eligibility.py`.
    """
    known = {source.path for source in sources}
    known |= {str(parent) for path in known for parent in PurePosixPath(path).parents}
    for source in sources:
        page = source.path in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")
        if not (page or (source.path.startswith("docs/") and source.path.endswith(".md"))):
            continue
        fenced = False
        for number, line in enumerate(source.lines, 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            for path in [] if fenced else _PATH.findall(line):
                name = path.rstrip("/")
                if name.split("/")[0] not in heads:
                    continue
                places = [f"{head}{name}" for head in ("", *_PACKAGES)]
                if not any(place in known or f"{place}.py" in known for place in places):
                    yield Finding(source.path, number, f"there is no `{path}`", path)


def heads_of(sources: Sequence[Source]) -> frozenset[str]:
    """Return what a path on a page can begin with: top-level folders, packages, and the rooms of packages."""
    heads: set[str] = set()
    for source in sources:
        parts = PurePosixPath(source.path).parts
        if len(parts) > 1:
            heads.add(parts[0])
        if parts[0] in FLOORS and len(parts) > 3:
            heads |= {parts[1], parts[2]}
    return frozenset(heads)
