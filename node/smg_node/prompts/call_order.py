"""Call order: the results of tools behind a turn, in the order of its calls. Pure."""

from collections.abc import Iterable, Iterator

from smg_node.core.generation.request import Turn


def in_call_order(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield the turns with each run of tool results in the order of the calls before it; results of no call last."""
    places: dict[str, int] = {}
    run: list[Turn] = []
    for turn in turns:
        if turn.role == "tool":
            run.append(turn)
            continue
        if run:
            yield from _sorted_run(run, places)
            run = []
        if turn.calls or places:
            places = {call.call_id: at for at, call in enumerate(turn.calls)}
        yield turn
    yield from _sorted_run(run, places)


def _sorted_run(run: list[Turn], places: dict[str, int]) -> list[Turn]:
    if len(run) > 1 and places:
        run.sort(key=lambda turn: places.get(turn.answers_call or "", len(places)))
    return run
