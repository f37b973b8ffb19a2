"""Shared vocabularies: what a data process has of its template, and how it comes by what that has not read.

    needed ─▶ read before the fork? ── yes ─▶ it is here at once, its memory shared with all that were forked
                    │ no
                    ├─ nothing is served yet ─▶ note it, ask for a template that has it, and wait to be replaced
                    └─ else ──────────────────▶ note it for processes to come, and read it here

A process that waits has nothing to lose: it serves no model. Whoever is told that there will be no such template, or waits
for too long, reads the files itself, as every process does where there is no template.
"""

import threading
from collections.abc import Callable
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.vocabularies.noted_vocabularies import NotedVocabularies
from smg_node.fleet.vocabularies.replacement import REPLACED_CODE
from smg_node.tokens.files.huggingface import SLOW_BYTES
from smg_node.tokens.files.tiktoken import is_ranks_file
from smg_node.tokens.files.tokenizer_json import NAME
from smg_node.tokens.files.verification_proof import proof_key
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer

PATIENCE_S: Final = 30.0
"""Reading four large vocabularies takes a template process ten seconds where others are busy."""


def is_large(bundle: TokenizerBundle) -> bool:
    """Return whether it pays to share what is made of these files."""
    return any(
        len(content) >= SLOW_BYTES
        for name, content in bundle.files.items()
        if name == NAME or is_ranks_file(name)
    )


class SharedVocabularies:
    """One per data process. `find` is for threads, the rest for the loop's.

    `read` is what the template has read, by `proof_key`; each is given out once, because caches in front of an encoder
    belong to one model. `ask` asks for a template that has all that is noted, from any thread; `serves_nothing` says
    whether this process may be replaced for it.
    """

    def __init__(
        self,
        read: dict[str, LoadedTokenizer],
        noted: NotedVocabularies,
        *,
        ask: Callable[[], None],
        serves_nothing: Callable[[], bool],
    ) -> None:
        self._read: Final = read
        self._noted: Final = noted
        self._ask: Final = ask
        self._serves_nothing: Final = serves_nothing
        self._answered: Final = threading.Event()
        self._replaced = False

    def find(self, bundle: TokenizerBundle) -> LoadedTokenizer | None:
        """Return the tokenizer of `bundle` if it was read before the fork; None if it has to be read here.

        OVERLOADED `process_replaced` where another process, which has it, takes this one's place. May wait for that.
        """
        if not is_large(bundle):
            return None
        key = proof_key(bundle)
        noted = self._noted.note(key, bundle)
        found = self._read.pop(key, None)
        if found is not None:
            found.digest = bundle.digest
            return found
        if not noted or self._answered.is_set() or not self._serves_nothing():
            return None
        self._ask()
        self._answered.wait(PATIENCE_S)
        if self._replaced:
            raise SmgError(
                ErrorKind.OVERLOADED,
                "a process that shares this vocabulary takes the place of this one",
                code=REPLACED_CODE,
            )
        # Whoever waited in vain once reads everything itself.
        self._answered.set()
        return None

    def alone(self) -> None:
        """Let whoever waits read the files here."""
        self._answered.set()

    def replace(self) -> None:
        """Tell whoever waits that this process is replaced."""
        self._replaced = True
        self._answered.set()
