"""Stop strings: Aho-Corasick machine that ends a text at one, and holds back only a possible
beginning of one. Pure.

Which occurrence counts, for every way of cutting the same text into pieces: the one that *ends* first,
because the text is over the moment a stop string is complete; of several that end there, the one that
*starts* first, which is the longest. So nothing is ever held for the sake of a decision, only because
it may be the beginning of a stop string, and what is held is the longest such ending of the text.

An Aho-Corasick automaton over characters, entered only where a first character of some stop string
stands: the state is the longest ending of the text that begins a stop string, and its depth is what is
held. Linear in the text; building it is linear in the stop strings.

"Efficient string matching: an aid to bibliographic search", Aho and Corasick (1975).
"""

import re
from collections import deque
from collections.abc import Sequence


class StopMachine:
    """Watches one choice's text for `strings`; with `keep` the matched string is let out as well."""

    __slots__ = (
        "_depth",
        "_fail",
        "_firsts",
        "_held",
        "_keep",
        "_match",
        "_next",
        "_over",
        "_seek",
        "_state",
    )

    def __init__(self, strings: Sequence[str], *, keep: bool) -> None:
        assert all(strings), "an empty stop string would end every text"
        self._keep = keep
        self._firsts = frozenset(string[0] for string in strings)
        # Finds the next candidate; alternatives, because an empty class is no pattern.
        self._seek = re.compile("|".join(map(re.escape, sorted(self._firsts))) or "(?!)").search
        self._next: list[dict[str, int]] = [{}]
        self._fail = [0]
        self._depth = [0]
        self._match: list[str | None] = [None]
        self._state = 0
        self._held = ""
        self._over = False
        for string in strings:
            self._add(string)
        self._link()

    def feed(self, text: str) -> tuple[str, str | None]:
        """Take more text; return the text that may leave now, and the stop string if one is
        complete.

        After a match the text is over: what stood behind the stop string is dropped, and nothing more
        may be fed.
        """
        assert not self._over, "a text that has ended goes no further"
        if not self._state and self._firsts.isdisjoint(text):
            return text, None
        return self._walk(text)

    @property
    def holds(self) -> bool:
        """Whether text is held that may be the beginning of a stop string."""
        return self._state != 0

    def finish(self) -> str:
        """Return what was still held: the text ended before it became a stop string."""
        held, self._held, self._state = self._held, "", 0
        return held

    def _walk(self, text: str) -> tuple[str, str | None]:
        steps, fail, match = self._next, self._fail, self._match
        state = self._state
        at = 0
        while at < len(text):
            if not state:
                found = self._seek(text, at)
                if found is None:
                    break
                at = found.start()
            character = text[at]
            at += 1
            following = steps[state].get(character)
            while following is None and state:
                state = fail[state]
                following = steps[state].get(character)
            state = following or 0
            matched = match[state]
            if matched is not None:
                return self._end(text, at, matched), matched
        self._state = state
        whole = self._held + text
        cut = len(whole) - self._depth[state]
        self._held = whole[cut:]
        return whole[:cut], None

    def _end(self, text: str, at: int, matched: str) -> str:
        self._over = True
        whole = self._held + text[:at]
        self._held, self._state = "", 0
        return whole if self._keep else whole[: len(whole) - len(matched)]

    def _add(self, string: str) -> None:
        state = 0
        for character in string:
            following = self._next[state].get(character)
            if following is None:
                following = len(self._next)
                self._next[state][character] = following
                self._next.append({})
                self._fail.append(0)
                self._depth.append(self._depth[state] + 1)
                self._match.append(None)
            state = following
        self._match[state] = string

    def _link(self) -> None:
        """Point every state at the longest proper ending of its string that is a state too."""
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            for character, following in self._next[state].items():
                back = self._fail[state]
                while back and character not in self._next[back]:
                    back = self._fail[back]
                self._fail[following] = self._next[back].get(character, 0)
                # A shorter stop string that ends here counts only where no longer one does.
                if self._match[following] is None:
                    self._match[following] = self._match[self._fail[following]]
                queue.append(following)
