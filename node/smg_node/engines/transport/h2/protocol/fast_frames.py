"""Fast frames: takes the frames that nearly every answer consists of in one compiled loop: head,
messages, end. Pure.

They are looked at one by one for what can be seen in them alone; whatever is not exactly one of them ends the run and
is the caller's. Python needs 4 us for the three or four frames of a short answer, and 1 us where this is compiled.
"""

from typing import Final

from smg_node.engines.transport.h2.protocol.response_head import Ending
from smg_node.engines.transport.h2.protocol.stream_state import Flow
from smg_node.native.grpc_messages import whole_messages

_HEAD: Final = 9
"""The head of a frame (RFC 9113 4.1)."""
_HEADERS: Final = 1
"""Its kind for headers; that of data is 0."""
_OPENS: Final = 4
_ENDS: Final = 5
"""The flags of headers that are whole, and of such that are the end of an answer too."""


def quick_frames(
    data: bytes,
    at: int,
    flows: dict[int, Flow],
    usual: dict[bytes, int],
    fine: Ending,
    size_max: int,
    touched: list[Flow],
) -> tuple[int, int, bool]:
    """Take frames from `at` on; return where the first other one begins, the bytes of answers taken, whether any was.

    `flows` has each call that is not over; one that ended well gets the ending `fine` and leaves.
    `usual` has blocks of headers that were read before, each with the flags of the one frame in
    which it is as it should be. `size_max` is as in `whole_messages`. A flow with something new is
    appended to `touched`, once as long as `touched` of it is not cleared.
    """
    end, taken, heard = len(data), 0, False
    while end - at >= _HEAD:
        kind, flags = data[at + 3], data[at + 4]
        if kind > _HEADERS:
            break
        number = data[at + 5] << 24 | data[at + 6] << 16 | data[at + 7] << 8 | data[at + 8]
        flow = flows.get(number)
        if flow is None:
            break
        if kind == _HEADERS:
            length = data[at] << 16 | data[at + 1] << 8 | data[at + 2]
            stop = at + _HEAD + length
            if stop > end or usual.get(data[at + _HEAD : stop]) != flags:
                break
            if flags == _OPENS and not flow.answered:
                flow.answered = flow.whole = heard = True
                at = stop
                continue
            if flags != _ENDS or flow.unsent or flow.part:
                break
            del flows[number]
            flow.ending = fine
            at = stop
        else:
            if flags or not flow.whole:
                break
            messages, room = flow.messages, flow.room
            had = len(messages)
            stop = whole_messages(data, at, number, size_max, room, messages)
            if stop == at:
                break
            size = stop - at - _HEAD * (len(messages) - had)
            flow.room = room - size
            taken += size
            at = stop
        heard = True
        if not flow.touched:
            flow.touched = True
            touched.append(flow)
    return at, taken, heard
