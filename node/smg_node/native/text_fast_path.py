"""Text fast path: SSE frames straight from engine messages, where only plain text changes.

An answer that is shown as it is goes a long way from message to frame, and every stop on it is there for answers of
another kind. Once one is known to need none of them, the rest of it can go through here in one step: 0.4 us a token
where this is compiled. Whatever is not exactly that (an end, an id that is not whole characters, another choice,
anything odd) goes the long way, which finds everything as if it had seen all that came before.
"""

from array import array
from collections.abc import Callable, Collection, Sequence
from typing import Final

from smg_node.native.stream_messages import ChunkReader

ANY_CACHED: Final = 0xFFFF_FFFF
"""More tokens than any engine can say it had cached: it is not looked at."""


class CutThrough:
    """Fast path of one choice, from its first shown text on."""

    __slots__ = (
        "_at_once", "_cached", "_ending", "_head", "_most", "_mute", "_put", "_reader", "_said", "_tail", "_text",
        "_texts", "_told", "behind",
    )  # fmt: skip

    def __init__(
        self,
        reader: ChunkReader,
        texts: Sequence[str | None],
        ending: Collection[int],
        *,
        most: int,
        at_once: int,
        said: "array[int]",
        told: list[str],
        head: bytes,
        tail: bytes,
        text: Callable[[str], bytes],
        cached: int,
    ) -> None:
        """Begin; `said` and `told` are the choice's ids and texts so far, and grow here.

        `texts` is what each id prints, None where it is not whole characters on its own; ids of
        `ending` may end the choice, which has at most `most` ids here, and no more than `at_once`
        of one wake-up. A frame is `head`, a text as a JSON string, `tail`; `text` makes such a
        string of any text. More tokens of the prompt than `cached` were not reported to be in the
        engine's cache so far.
        """
        self._reader = reader
        self._texts = texts if type(texts) is list else list(texts)
        self._ending = ending
        self._most = most
        self._at_once = at_once
        self._said = said
        self._told = told
        self._head = head
        self._tail = tail
        self._text = text
        self._cached = cached
        self._put: Callable[[bytes], bool] | None = None
        self._mute: Callable[[], None] | None = None
        self.behind = False
        """Whether who was shown frames asked to be waited for."""

    def to(self, put: Callable[[bytes], bool], mute: Callable[[], None]) -> None:
        """Have `show` pass frames to `put`, whose answer is `behind`; an exception of it ends the
        path, and `mute` is called first.
        """
        self._put = put
        self._mute = mute

    def show(self, batch: Sequence[bytes]) -> bool | None:
        """Pass on one wake-up's messages as frames; whether more is wanted, None where one is not
        plain.
        """
        frames = self.take(batch)
        if not frames:
            return None
        put, mute = self._put, self._mute
        assert put is not None
        assert mute is not None
        try:
            self.behind = put(frames)
        except BaseException:
            mute()
            raise
        return not self.behind

    def take(self, batch: Sequence[bytes]) -> bytes:
        """Return the frames of one wake-up's messages; none, and nothing has happened, where one is
        not plain.
        """
        reader, ending, texts = self._reader, self._ending, self._texts
        known = len(texts)
        ids: list[int] = []
        told: list[str] = []
        frames: list[bytes] = []
        at = 0
        for message in batch:
            if not reader.is_of_first(message, ids, self._cached) or len(ids) == at:
                return b""
            text = ""
            while at < len(ids):
                one = ids[at]
                if one >= known or one in ending:
                    return b""
                printed = texts[one]
                if printed is None:
                    return b""
                text = text + printed if text else printed
                at += 1
            if not text:
                return b""
            told.append(text)
            frames.append(self._head)
            if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
                frames.append(b'"%b"' % text.encode())
            else:
                frames.append(self._text(text))
            frames.append(self._tail)
        if at > self._at_once or len(self._said) + at > self._most:
            return b""
        self._said.extend(ids)
        self._told += told
        return b"".join(frames)
