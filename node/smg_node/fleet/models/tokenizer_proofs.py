"""Tokenizer proofs: verification results kept in the data dir, so that a restarted process is ready
in half the time.

One file a bundle, under the sum of all that it depends on (`verification_proof`): a changed file,
library or version of this program has another name, so nothing stale is ever found. Files are
written beside and renamed, the last writer wins, and all that write say the same. A disk that
refuses costs a line in the log and the time that would have been saved.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files.verification_proof import (
    PROOF_MAX_BYTES,
    Proof,
    proof_key,
    read_proof,
    write_proof,
)

PROOFS_KEPT_MAX: Final = 32
"""As many as bundles are kept; the oldest go first. One is up to a few megabytes."""

_log = logging.getLogger("smg_node.fleet")


class KeptProofs:
    """Proofs under one folder, shared by all processes of a node; methods block on the disk and belong in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, bundle: TokenizerBundle) -> Proof | None:
        """Return what was proven about exactly these files; None if nothing was, or what is there is damaged."""
        path = self._folder / proof_key(bundle)
        try:
            with open(path, "rb") as file:
                written = file.read(PROOF_MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("the proof %s cannot be read: %s", path, error.strerror)
            return None
        proof = read_proof(written)
        if proof is None:
            _log.warning("the proof %s is damaged and not used", path)
        return proof

    def keep(self, bundle: TokenizerBundle, proof: Proof) -> None:
        """Remember `proof`. A disk that refuses is logged, not raised; what would be too large is left out."""
        written = write_proof(proof)
        if len(written) > PROOF_MAX_BYTES:
            return
        path = self._folder / proof_key(bundle)
        fresh = path.with_suffix(f".{os.getpid()}.new")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_bytes(written)
            fresh.replace(path)
            self._forget_oldest()
        except OSError as error:
            _log.warning("what was proven about a tokenizer cannot be kept: %s", error)
            # What half was written goes, where the disk allows that much.
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def _forget_oldest(self) -> None:
        """Leave the newest; another process may do the same at the same time."""
        found = [(item.stat().st_mtime, item) for item in self._folder.iterdir()]
        for _, item in sorted(found, reverse=True)[PROOFS_KEPT_MAX:]:
            item.unlink(missing_ok=True)
