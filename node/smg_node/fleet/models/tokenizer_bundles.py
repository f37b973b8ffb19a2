"""Tokenizer bundles: reads tokenizer files from a folder or file, and caches what engines sent in
the data dir.

The cache keeps every bundle an engine ever sent under its digest (`tokenizers/<digest>/`), and a
small note per (contract, model path) that names the last digest, so that a worker whose GetTokenizer
fails can still be served with what it sent before. Files are written beside and renamed, so a crash or
a full disk leaves the old state; a cache that cannot be written costs a warning, nothing else.
"""

import hashlib
import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle

KNOWN_NAMES: Final = frozenset(
    {
        "tokenizer.json",
        "tokenizer_config.json",
        "config.json",
        "generation_config.json",
        "chat_template.jinja",
        "chat_template.json",
        "special_tokens_map.json",
        "preprocessor_config.json",
        "processor_config.json",
        "video_preprocessor_config.json",
    }
)
"""What a tokenizer needs, and the image processor of a model that takes pictures."""
FILES_MAX: Final = 64
BUNDLES_KEPT_MAX: Final = 32
"""Older bundles leave the cache first; one is a few megabytes."""

_log = logging.getLogger("smg_node.fleet")


def bundle_from_path(path: str, *, max_bytes: int) -> TokenizerBundle:
    """Read a model folder, a tokenizer.json or a *.tiktoken file (with its neighbours).

    NOT_FOUND if there is nothing, INVALID_REQUEST if it is too large or unreadable.
    """
    root = Path(path).expanduser()
    if root.is_file():
        wanted = [root, *(root.parent / name for name in sorted(KNOWN_NAMES - {root.name}))]
        if root.name.endswith(".tiktoken"):
            wanted = [item for item in wanted if item.name != "tokenizer.json"]
        return _read([item for item in wanted if item.is_file()], root.parent, max_bytes, str(root))
    if not root.is_dir():
        raise SmgError(ErrorKind.NOT_FOUND, f"no tokenizer at {path}: no such file or folder")
    wanted = [item for item in sorted(root.iterdir()) if item.is_file() and _wanted(item.name)]
    wanted += sorted(root.glob("additional_chat_templates/*.jinja"))
    return _read(wanted, root, max_bytes, str(root))


def _wanted(name: str) -> bool:
    return name in KNOWN_NAMES or name.endswith(".tiktoken")


def _read(paths: list[Path], root: Path, max_bytes: int, origin: str) -> TokenizerBundle:
    files: dict[str, bytes] = {}
    total = 0
    for path in paths[:FILES_MAX]:
        try:
            total += path.stat().st_size
            if total > max_bytes:
                raise SmgError(
                    ErrorKind.TOO_LARGE, f"the tokenizer at {origin} is over {max_bytes} bytes"
                )
            files[path.relative_to(root).as_posix()] = path.read_bytes()
        except OSError as error:
            raise SmgError(
                ErrorKind.INVALID_REQUEST,
                f"cannot read the tokenizer file {path}: {error.strerror}",
            ) from error
    if not any(name == "tokenizer.json" or name.endswith(".tiktoken") for name in files):
        raise SmgError(
            ErrorKind.NOT_FOUND,
            f"no tokenizer at {origin}: no tokenizer.json and no *.tiktoken file",
        )
    return TokenizerBundle(files, digest_of(files), origin)


def digest_of(files: dict[str, bytes]) -> str:
    """Return the hex SHA-256 over names and contents, in order of names."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0{len(files[name])}\0".encode())
        total.update(files[name])
    return total.hexdigest()


class BundleCache:
    """Bundles under one folder; all methods block on the disk and belong in a thread."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def keep(self, bundle: TokenizerBundle, *, source: str) -> None:
        """Remember `bundle` as what `source` sent last. A disk that refuses is logged, not raised."""
        try:
            self._keep_files(bundle)
            self._write(self._note(source), bundle.digest.encode())
            self._forget_oldest()
        except OSError as error:
            _log.warning("the tokenizer cache %s cannot be written: %s", self._folder, error)

    def last(self, source: str) -> TokenizerBundle | None:
        """Return what `source` sent last, or None; a damaged copy is as good as none."""
        try:
            digest = self._note(source).read_text(encoding="ascii").strip()
            if len(digest) != 64 or not digest.isalnum():
                return None
            folder = self._folder / digest
            files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            bundle = _read(files, folder, self._max_bytes, f"the cache, from {source}")
        except (OSError, UnicodeDecodeError, SmgError):
            return None
        # The folder is named by the engine's own sum, which covers its archive; ours is over the files.
        marker = bundle.files.get(_SUM_NAME, b"").decode("ascii", "replace")
        files_only = {name: data for name, data in bundle.files.items() if name != _SUM_NAME}
        if marker != digest_of(files_only):
            _log.warning("the cached tokenizer %s is damaged and not used", folder)
            return None
        return TokenizerBundle(files_only, digest, bundle.origin)

    def _keep_files(self, bundle: TokenizerBundle) -> None:
        target = self._folder / bundle.digest
        if target.is_dir():
            if _marker(target) == digest_of(dict(bundle.files)):
                os.utime(target)
                return
            # Damaged, or kept by a release that left some of the archive's files out.
            shutil.rmtree(target, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
        try:
            files = dict(bundle.files)
            for name, content in [*files.items(), (_SUM_NAME, digest_of(files).encode())]:
                path = fresh / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            try:
                fresh.rename(target)
            except OSError:
                # Another worker of the same model may have been faster, with the same files.
                if not target.is_dir():
                    raise
        finally:
            if fresh.exists():
                shutil.rmtree(fresh, ignore_errors=True)

    def _note(self, source: str) -> Path:
        return self._folder / f"last-{hashlib.sha256(source.encode()).hexdigest()[:32]}"

    def _write(self, path: Path, content: bytes) -> None:
        # Several workers of one model are read at a time, each by a thread of its own.
        fresh = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.new")
        fresh.write_bytes(content)
        fresh.replace(path)

    def _forget_oldest(self) -> None:
        folders = [
            item for item in self._folder.iterdir() if item.is_dir() and len(item.name) == 64
        ]
        folders.sort(key=lambda item: item.stat().st_mtime, reverse=True)
        for folder in folders[BUNDLES_KEPT_MAX:]:
            shutil.rmtree(folder, ignore_errors=True)


def _marker(folder: Path) -> str:
    """Return the sum over the files that a bundle was kept with; "" where there is none."""
    try:
        return (folder / _SUM_NAME).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


_SUM_NAME: Final = ".sum"
