"""gRPC messages in HTTP/2 DATA frames: finds frames of one whole message each, in runs of one call.

An engine that emits eight tokens at once sends eight such frames, and Python looks at each for a
microsecond and a half; a run of them costs 0.1 us each where this is compiled. Whatever is not
exactly such a frame ends the run and is the caller's.
"""

from typing import Final

_HEADS: Final = 14
"""The head of a frame and the prefix of a message (RFC 9113 4.1, and gRPC's Length-Prefixed-Message)."""
_PREFIX: Final = 5


def whole_messages(
    data: bytes, at: int, number: int, size_max: int, room: int, messages: list[bytes]
) -> int:
    """Append the messages of the DATA frames that stand from `at` on, and return where the first other frame begins.

    A frame counts while it is one of call `number` (as it stands on the wire, 32 bits), has no flags, is all there, holds one
    message of at most `size_max` bytes that is not compressed, and all frames before it and itself fit into `room` bytes
    of window. `at` is the beginning of a frame.
    """
    end = len(data)
    while end - at >= _HEADS:
        size = data[at + 10] << 24 | data[at + 11] << 16 | data[at + 12] << 8 | data[at + 13]
        length = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
        if length != size + _PREFIX or size > size_max or length > room or end - at - _HEADS < size:
            break
        if data[at + 3] or data[at + 4] or data[at + 9]:
            break
        call = data[at + 5] << 24 | data[at + 6] << 16 | data[at + 7] << 8 | data[at + 8]
        if call != number:
            break
        stop = at + _HEADS + size
        messages.append(data[at + _HEADS : stop])
        room -= length
        at = stop
    return at
