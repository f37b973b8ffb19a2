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
    """Looks at the pictures of requests. `takes` is None for a model of text; `role` is what the engine was started as."""

    def __init__(self, takes: Takes | None, *, trusting: bool, role: str = "regular") -> None:
        self._takes = takes
        self._role = role
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
        told = asked.media.get("encode_bootstrap_info")
        rooms = {one.item_index for one in told.items} if told is not None else set()
        wrong = self._wrong_rooms(rooms, len(batches)) if told is not None else ""
        if wrong:
            return Looked(Code.INVALID_ARGUMENT, wrong, mistakes=1)
        covered = all(one.pixels is not None or at in rooms for at, one in enumerate(batches))
        handed = bool(asked.transfer) or self._role == "decode" or (bool(rooms) and covered)
        found = [*mistakes(batches, asked.ids, self._takes, handed=handed)]
        if rooms and self._role != "prefill":
            # Nobody waits there, and an encoder without values ends the engine.
            found.append(
                Mistake(Trusted.STOPS, "pictures in rooms, at an engine that waits in none")
            )
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

    def _wrong_rooms(self, rooms: set[int], count: int) -> str:
        """Return why the servicer refuses the rooms of a request, "" if it does not."""
        if not count:
            return "GenerateRequest.encode_bootstrap_info present but mm_inputs is missing"
        odd = sorted(at for at in rooms if at >= count)
        return (
            f"EPD encode bootstrap item_index {odd[0]} out of range for {count} mm item(s)"
            if odd
            else ""
        )

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
