"""Media intake: reads the pictures of a request, decides what becomes of it, and says what the engine sees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smg_chaos.engine.media.media_checks import Mistake, Takes, Trusted, mistakes
from smg_chaos.engine.media.media_inputs import MediaError, SentMedia, read_media
from smg_chaos.engine.media.seen_pictures import EncoderCache
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.rpc_call import Code

_SHOWN_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found. `code` is how the request ends, None if it goes on; `stops`: the engine ends with it."""

    code: Code | None = None
    message: str = ""
    stops: bool = False
    mistakes: int = 0
    shared: int = 0


class MediaIntake:
    """Looks at the pictures of requests. `takes` is None for a model of text."""

    def __init__(self, takes: Takes | None, *, trusting: bool) -> None:
        self._takes = takes
        self._trusting = trusting
        self.cache = EncoderCache(trusting=trusting)

    def look(self, asked: Asked) -> Looked:
        """Read a request's pictures into `asked`, and return what becomes of it."""
        if self._takes is None:
            return Looked(Code.INVALID_ARGUMENT, "this model takes no pictures", mistakes=1)
        try:
            batches = read_media(asked.media, asked.open_shared)
        except MediaError as error:
            return Looked(Code.INVALID_ARGUMENT, str(error), mistakes=1)
        shared = sum(_shared(one) for one in batches)
        handed = bool(asked.transfer)
        found = [*mistakes(batches, asked.ids, self._takes, handed=handed)]
        if not self._trusting:
            found += self.cache.mistakes(batches)
        looked = self._decided(found, shared)
        if looked.code is None and not looked.stops:
            asked.pictures = self.cache.seen(batches, found)
            asked.hashes = [
                (name, *place)
                for one in batches
                for name, place in zip(one.identities(), one.ranges, strict=False)
            ]
        return looked

    def _decided(self, found: Sequence[Mistake], shared: int) -> Looked:
        message = "; ".join(one.message for one in found[:_SHOWN_MAX])
        kinds = {one.trusted for one in found}
        code, stops = None, False
        if found and not self._trusting:
            code = Code.INVALID_ARGUMENT
        elif Trusted.STOPS in kinds:
            stops = True
        elif Trusted.INTERNAL in kinds:
            code = Code.INTERNAL
        return Looked(code, f"media: {message}", stops, len(found), shared)


def _shared(media: SentMedia) -> int:
    tensors = [*media.sides.values(), *([media.pixels] if media.pixels else [])]
    return sum(one.shared for one in tensors)
