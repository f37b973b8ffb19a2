"""Journey log: bounded record of this node's latest requests, with every placement decision.

A journey in progress is an object that its generation writes to. When it has ended it is packed: a
few hundred bytes that the garbage collector never scans, where the objects would take ten times as
much. That is done for 64 of them at a time, or at a query, and those that were placed once, as
nearly all are, go into one bundle, so that unread journeys cost next to nothing. The oldest are
dropped when there are more than 10,000, or more than 16 MiB of them, whichever comes first.

No text of a prompt or an answer is recorded, and no key: only ids, counts, times, and error
messages of engines and of refusals.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from smg_node.core.generation.outcome import Outcome
from smg_node.core.journey import Broke, Chosen, Journey, Ran, Ratings
from smg_node.pipeline.observability.refusals import AnswerNames, Refusals

if TYPE_CHECKING:
    from smg_node.pipeline.observability.tool_run_log import ToolRunLog

ENTRIES_MAX: Final = 10_000
BYTES_MAX: Final = 16 * 1024 * 1024
"""Packed journeys: ten times what 10,000 requests take that were placed once, among three workers."""
AT_ONCE: Final = 64
"""So many that have ended are packed together, in 0.2 ms."""
SAME_ID_MAX: Final = 16
"""Journeys told for one id: a client chooses its request ids, and may choose the same again and again."""
JOURNEY_BYTES_MAX: Final = 32 * 1024
"""One that is larger loses details: 16 of them must fit into an answer between nodes (1 MB)."""
_TEXT_CHARACTERS_MAX: Final = 256
_WORD_CHARACTERS_MAX: Final = 64
_CANDIDATES_OF_LARGE: Final = 4
_STEPS_OF_LARGE: Final = (256, 64, 16, 4)
_OVERHEAD_BYTES: Final = 300
"""What a kept journey takes besides its bytes: two ids, and what holds the three together."""
_USUAL_BYTES_MAX: Final = 4_096
"""A bundle with more for each of its journeys is packed one by one, and each cut to its bound."""

_Ended: TypeAlias = tuple[Journey, Outcome, int]
"""A journey, how it ended, and when, in milliseconds."""

# Ratings are the one sequence that is neither a list nor a tuple.
_encode: Final = msgspec.msgpack.Encoder(enc_hook=Ratings.told).encode
_decode: Final = msgspec.msgpack.Decoder(Journey).decode
_names: Final = attrgetter("request_id", "answer")
_decode_ended: Final = msgspec.msgpack.Decoder(list[_Ended]).decode


class _Bundle:
    """Packed journeys that ended one after the other; the first `gone` of them are dropped."""

    __slots__ = ("_packed", "bytes", "gone", "names")

    def __init__(self, ended: Sequence[_Ended], packed: bytes) -> None:
        # The encoder leaves half as much room again behind its bytes; a copy has none.
        self._packed = bytes(memoryview(packed))
        self.names = [_names(one[0]) for one in ended]
        self.bytes = len(packed) + _OVERHEAD_BYTES * len(ended)
        """What is left of it takes, about."""
        self.gone = 0

    def __len__(self) -> int:
        return len(self.names) - self.gone

    def drop(self) -> int:
        """Drop the oldest; return its share of bytes, which are freed with the last one."""
        share = self.bytes // len(self)
        self.gone += 1
        self.bytes -= share
        return share

    def named(self, name: str) -> Iterator[Journey]:
        """Yield those of exactly that id, newest first."""
        found = [at for at in range(self.gone, len(self.names)) if name in self.names[at]]
        if not found:
            return
        ended = _decode_ended(self._packed)
        for at in reversed(found):
            yield ended_as(*ended[at])


class Journal:
    """Keeps journeys. `node` is this node's name."""

    def __init__(
        self, node: str, *, entries_max: int = ENTRIES_MAX, bytes_max: int = BYTES_MAX
    ) -> None:
        self.refusals = Refusals(node)
        """Requests that were refused before they had a journey."""
        self.answers = AnswerNames()
        """Under which names their answers are kept."""
        self._tool_runs: ToolRunLog | None = None
        self._node = node
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._model = self._told = ""
        """The model that was asked for last, and as much of it as may be told: most ask for the same."""
        self._open: dict[int, Journey] = {}
        self._ended: list[_Ended] = []
        """Those that are to be packed."""
        self._bytes = self._count = 0
        self._kept: deque[_Bundle] = deque()
        """Nobody asks often enough for a table of ids: to look at all takes 1 ms."""

    def __len__(self) -> int:
        """Return how many journeys can be queried, those in progress too."""
        self._pack_ended()
        return len(self._open) + self._count

    @property
    def kept_bytes(self) -> int:
        """Approximate bytes of the kept journeys."""
        self._pack_ended()
        return self._bytes

    def begin(self, request_id: str, dialect: str, model: str, now_ms: int) -> Journey:
        """Return the journey of a request that begins now, to be written to until `end`."""
        if model != self._model:
            self._model, self._told = model, _text(model)
        journey = Journey(request_id, self._node, dialect, self._told, now_ms)
        under_way = self._open
        if len(under_way) >= self._entries_max:
            # More requests at once than are kept at all: the oldest of them is not told until it has ended.
            del under_way[next(iter(under_way))]
        under_way[id(journey)] = journey
        return journey

    def end(self, journey: Journey, outcome: Outcome, now_ms: int) -> None:
        """Keep a finished journey, at `now_ms` of wall-clock time; it is not written to any more."""
        self._open.pop(id(journey), None)
        ended = self._ended
        ended.append((journey, outcome, now_ms))
        if len(ended) >= AT_ONCE:
            self._pack_ended()

    def ran(self, request_id: str, ran: Ran) -> None:
        """Keep what became of a call of a tool, to be told with the request's journey."""
        if self._tool_runs is None:
            # Imported with the first one: most nodes run no tools.
            from smg_node.pipeline.observability.tool_run_log import ToolRunLog

            self._tool_runs = ToolRunLog()
        self._tool_runs.add(
            request_id,
            msgspec.structs.replace(
                ran,
                server=_text(ran.server, _WORD_CHARACTERS_MAX),
                tool=_text(ran.tool, _WORD_CHARACTERS_MAX),
                rule=_text(ran.rule, _WORD_CHARACTERS_MAX),
            ),
        )

    def _with_runs(self, found: list[Journey]) -> list[Journey]:
        """Return the journeys of a request, the first of them, which is the last here, with its runs of tools."""
        if not found or self._tool_runs is None:
            return found
        *later, first = found
        return [
            *later,
            msgspec.structs.replace(first, runs=self._tool_runs.of(first.request_id)),
        ]

    def _pack_ended(self) -> None:
        ended, self._ended = self._ended, []
        if not ended:
            return
        bundle = _bundled(ended)
        self._keep([bundle] if bundle is not None else [_alone(*one) for one in ended])

    def _keep(self, bundles: Sequence[_Bundle]) -> None:
        kept = self._kept
        for bundle in bundles:
            kept.append(bundle)
            self._count += len(bundle)
            self._bytes += bundle.bytes
        while self._count > self._entries_max or self._bytes > self._bytes_max:
            self._bytes -= kept[0].drop()
            self._count -= 1
            if not len(kept[0]):
                kept.popleft()

    def get(self, wanted: str) -> tuple[Journey, ...]:
        """Return the journeys of a request id, or of an answer's id, newest first and at most 16.

        An answer is found with the prefix that its dialect gives its id (`chatcmpl-`, `cmpl-`) and without,
        and under the name that it is stored with (`resp_`). A refused request is told as a journey.
        """
        name = self.answers.request_of(wanted)
        found = self._named(name)
        answer = wanted.rpartition("-")[2]
        if not found and answer:
            found = [journey for journey in self._named(answer) if journey.answer == answer]
        refused = [one for one in self.refusals.named(name) if not _is_told(one, found)]
        if refused:
            found = sorted([*found, *refused], key=lambda journey: -journey.began_ms)
        return tuple(self._with_runs(found[:SAME_ID_MAX]))

    def _named(self, name: str) -> list[Journey]:
        """Those of exactly that id, newest first."""
        if not name:
            return []
        self._pack_ended()
        under_way = [
            journey
            for journey in reversed(self._open.values())
            if name in (journey.request_id, journey.answer)
        ]
        kept = (journey for bundle in reversed(self._kept) for journey in bundle.named(name))
        return [*under_way, *islice(kept, SAME_ID_MAX)]


def _is_told(refused: Journey, journeys: Sequence[Journey]) -> bool:
    """Whether a refusal is the end of one of these journeys."""
    assert refused.ended_ms is not None
    return any(
        journey.code == refused.code and refused.began_ms <= journey.began_ms <= refused.ended_ms
        for journey in journeys
    )


def _bundled(ended: Sequence[_Ended]) -> _Bundle | None:
    """Return these journeys in one bundle; None where one of them may have to be cut."""
    walked = [one[0].steps for one in ended]
    # Column by column: most were placed once, and nothing broke.
    if max(map(len, walked)) > 1 or Broke in map(type, chain.from_iterable(walked)):
        return None
    try:
        packed = _encode(ended)
    except UnicodeEncodeError:
        return None
    return _Bundle(ended, packed) if len(packed) <= _USUAL_BYTES_MAX * len(ended) else None


def _alone(journey: Journey, outcome: Outcome, now_ms: int) -> _Bundle:
    """Return a journey in a bundle of its own, cut to its bound."""
    whole = unpack(pack(ended_as(journey, outcome, now_ms)))
    plain = msgspec.structs.replace(outcome, model="", error_code=whole.code, oddities={})
    ended = ((whole, plain, now_ms),)
    return _Bundle(ended, _encode(ended))


def ended_as(journey: Journey, outcome: Outcome, now_ms: int) -> Journey:
    """Return a journey with its end, at `now_ms` of wall-clock time."""
    ttft_s = outcome.ttft_s()
    return msgspec.structs.replace(
        journey,
        model=_text(outcome.model) or journey.model,
        ended_ms=now_ms,
        kind=outcome.kind,
        code=outcome.error_code,
        status=outcome.status,
        prompt_tokens=outcome.prompt_tokens,
        cached_tokens=outcome.cached_tokens,
        completion_tokens=outcome.completion_tokens,
        ttft_ms=None if ttft_s is None else round(ttft_s * 1000),
        bills=outcome.bills,
    )


def pack(journey: Journey) -> bytes:
    """Return a journey's stored form, which is also its form between nodes: at most 32 KiB."""
    try:
        packed = _encode(_cut(journey))
        if len(packed) <= JOURNEY_BYTES_MAX:
            return packed
    except UnicodeEncodeError:
        # Half a character, in a text that is not ours; what follows makes all texts plain.
        packed = b""
    for steps_max in _STEPS_OF_LARGE:
        packed = _encode(_shortened(journey, steps_max))
        if len(packed) <= JOURNEY_BYTES_MAX:
            break
    assert len(packed) <= JOURNEY_BYTES_MAX
    return packed


def unpack(packed: bytes) -> Journey:
    """Return what `pack` packed, on this node or another; ValueError for anything else."""
    try:
        return _decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("this is no journey") from error


def _text(text: str, most: int = _TEXT_CHARACTERS_MAX) -> str:
    """Return a text that fits into a journey: not long, and whole characters only."""
    if len(text) <= most and text.isascii():
        return text
    return text[:most].encode("utf-8", "replace").decode()


def _cut(journey: Journey) -> Journey:
    """Return a journey with the engines' messages cut short."""
    for step in journey.steps:
        if type(step) is Broke:
            break
    else:
        return journey
    steps = [_told(step) if type(step) is Broke else step for step in journey.steps]
    return msgspec.structs.replace(journey, steps=steps)


def _told(step: Broke) -> Broke:
    return msgspec.structs.replace(
        step,
        code=_text(step.code, _WORD_CHARACTERS_MAX),
        message=_text(step.message),
        then=_text(step.then),
    )


def _shortened(journey: Journey, steps_max: int) -> Journey:
    """Return a journey with fewer details: its first and last steps, and a few candidates of each."""
    steps, left_out = journey.steps, max(0, len(journey.steps) - steps_max)
    if left_out:
        half = steps_max // 2
        steps = [*steps[:half], *steps[-half:]]
    return msgspec.structs.replace(
        journey,
        request_id=_text(journey.request_id),
        model=_text(journey.model),
        code=_text(journey.code, _WORD_CHARACTERS_MAX),
        steps=[_told(step) if isinstance(step, Broke) else _few(step) for step in steps],
        more=journey.more + left_out,
        unplaced=_plain(journey.unplaced),
        runs=journey.runs[:steps_max],
    )


def _few(step: Chosen) -> Chosen:
    rated = tuple(
        msgspec.structs.replace(one, worker=_text(one.worker, _WORD_CHARACTERS_MAX))
        for one in step.rated[:_CANDIDATES_OF_LARGE]
    )
    return msgspec.structs.replace(
        step,
        worker=_text(step.worker, _WORD_CHARACTERS_MAX),
        policy=_text(step.policy, _WORD_CHARACTERS_MAX),
        rated=rated,
        dropped=_plain(step.dropped),
        note=_text(step.note),
    )


def _plain(dropped: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    few = dropped[:_CANDIDATES_OF_LARGE]
    return tuple((_text(worker, _WORD_CHARACTERS_MAX), _text(why)) for worker, why in few)
