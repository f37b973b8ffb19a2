"""Holder sets: interned masks of holders, each kept once and named by a number. Pure.

Most blocks share their set with thousands of others, so an index keeps a number for a block, and the mask stands here
once. To take a bit from every block at once, the masks are rewritten, and no block is touched. Which numbers are
still in use shows when the hand of the table has been everywhere (`see`, `end_turn`).
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from smg_node.routing.kv_index.holder_bits import Holder, Holders

NONE_KNOWN: Final = 0
"""The number that no set has: of blocks that are not there."""
NOBODY: Final = 1
"""The number of the empty set."""
WEIGHTS: Final = (1.0, 0.6, 0.3)
"""What a cached token saves of computing it: on the device, in the host's memory, further away."""
ASSUMED_WEIGHT: Final = 0.5
_VIEWS_MAX: Final = 4_096
"""So many are kept; each takes up to 70 bytes for each worker in it."""
View: TypeAlias = dict[str, float]
"""Who holds the blocks of a set, and what a token of them saves there; by `rank_key`."""
_RANK_MARK: Final = "\0"


def rank_key(worker: str, rank: int) -> str:
    """Return the name of a rank: of the first its worker's, so that most names hold a hash already."""
    return worker if rank == 0 else f"{worker}{_RANK_MARK}{rank}"


def worker_of(key: str) -> str:
    """Return the worker of a `rank_key`."""
    return key.partition(_RANK_MARK)[0]


class HolderSets:
    """Masks by number. At most `sets_max`; beyond, none is added, and the caller does with less."""

    def __init__(self, holders: Holders, sets_max: int) -> None:
        self._holders = holders
        self._sets_max = sets_max
        self.masks: list[int] = [0, 0]
        self._views: list[View | None] = [{}, {}]
        self._numbers: dict[int, int] = {0: NOBODY}
        self._seen: list[int] = [0, 0]
        self._turn = 1
        self._free: list[int] = []
        self._view_count = 0

    def __len__(self) -> int:
        return len(self.masks) - len(self._free) - 1

    def number(
        self,
        mask: int,
        near: int = NONE_KNOWN,
        holder: Holder | None = None,
        *,
        narrow: bool = False,
    ) -> int:
        """Return the number of a set; `NONE_KNOWN` where there is no room for it.

        A `narrow` one, of a single worker, finds room longer. If it differs from the set `near` only in bits of `holder`, its view is made of that one's.
        """
        found = self._numbers.get(mask)
        if found is None:
            if self._free:
                found = self._free.pop()
                self.masks[found] = mask
            elif len(self.masks) < self._sets_max * (2 if narrow else 1):
                found = len(self.masks)
                self.masks.append(mask)
                self._views.append(None)
                self._seen.append(0)
            else:
                return NONE_KNOWN
            self._numbers[mask] = found
            if holder is not None:
                self._derive(found, near, holder)
        self._seen[found] = self._turn
        return found

    def used(self) -> int:
        """Return all bits that some set has."""
        used = 0
        for mask in self.masks:
            used |= mask
        return used

    def see(self, number: int) -> int:
        """Note that a set is in use in this turn; return its mask."""
        self._seen[number] = self._turn
        return self.masks[number]

    def alive(self, values: Iterable[int]) -> bool:
        """Note that the sets of these values in tables are in use in this turn; return whether none of them is void."""
        numbers, seen, turn = [value >> 1 for value in values], self._seen, self._turn
        for number in numbers:
            seen[number] = turn
        return all(map(self.masks.__getitem__, numbers))

    def values_with(self, any_of: int, none_of: int) -> set[int]:
        """Return the values in tables of those sets that have one of these bits and none of those."""
        return {
            value
            for number, mask in enumerate(self.masks)
            if mask & any_of and not mask & none_of
            for value in (2 * number, 2 * number + 1)
        }

    def end_turn(self) -> None:
        """Free the numbers that were not used since the last time this was called."""
        turn = self._turn
        for number in range(NOBODY + 1, len(self.masks)):
            # A number that is free already has not been seen, and its mask is none.
            if self._seen[number] < turn and self._seen[number] >= 0:
                mask = self.masks[number]
                if self._numbers.get(mask) == number:
                    del self._numbers[mask]
                self.masks[number] = 0
                self._views[number] = None
                self._seen[number] = -1
                self._free.append(number)
        self._turn += 1

    def without(self, bits: int, instead: int = 0) -> bool:
        """Take bits from all sets, and give those that had one these; return whether any had.

        Sets may then be equal under two numbers.
        """
        masks, views = self.masks, self._views
        hit = [at for at, mask in enumerate(masks) if mask & bits]
        for number in hit:
            masks[number] = masks[number] & ~bits | instead
            views[number] = None
        if hit:
            self._numbers = {0: NOBODY}
            for number in range(NOBODY + 1, len(masks)):
                if self._seen[number] >= 0:
                    self._numbers.setdefault(masks[number], number)
        return bool(hit)

    def view(self, number: int) -> View:
        """Return the holders of a block of this set. Not to be changed."""
        found = self._views[number]
        if found is None:
            found = {}
            mask = self.masks[number]
            while mask:
                holder = self._holders.at((mask & -mask).bit_length() - 1)
                _write(found, holder, mask)
                mask &= ~holder.every
            self._keep_view(number, found)
        return found

    def _derive(self, number: int, near: int, holder: Holder) -> None:
        """Make the view of a set from that of another one, if that exists."""
        found = self._views[near]
        if found:
            view = dict(found)
            _write(view, holder, self.masks[number])
            self._keep_view(number, view)

    def _keep_view(self, number: int, view: View) -> None:
        self._view_count += 1
        if self._view_count > _VIEWS_MAX:
            self.forget_views()
        self._views[number] = view

    def forget_views(self) -> None:
        """Work all views out anew: what they follow from besides masks has changed."""
        self._views = [None] * len(self.masks)
        self._view_count = 0


def _write(view: dict[str, float], holder: Holder, mask: int) -> None:
    """Write into a view what a set says of one worker."""
    own = mask & holder.every
    anywhere = 0.0
    wide = own & ~holder.confirmed
    if wide and holder.rank_spans:
        wide &= ~holder.assumed_of_ranks
    if wide:
        anywhere = WEIGHTS[0] if wide & holder.told else ASSUMED_WEIGHT
    for rank in holder.ranks:
        weight = max(anywhere, rank_weight(holder, rank, own)) if own else 0.0
        key = rank_key(holder.worker, rank) if rank else holder.worker
        if weight:
            view[key] = weight
        else:
            view.pop(key, None)


def rank_weight(holder: Holder, rank: int, mask: int) -> float:
    """Return what a token of a block that has this mask saves on a rank, as far as that is known of the rank."""
    device, host, far = holder.ranks[rank]
    if mask & device:
        return WEIGHTS[0]
    found = WEIGHTS[1] if mask & host else WEIGHTS[2] if mask & far else 0.0
    spans = holder.rank_spans.get(rank)
    if spans is not None and mask & (spans[0] | spans[1] | spans[2] | spans[3]):
        found = max(found, ASSUMED_WEIGHT)
    return found


def best_rank(scores: View) -> View:
    """Return the best score of any rank of each worker."""
    best: View = {}
    for key, score in scores.items():
        worker = worker_of(key)
        if score > best.get(worker, 0.0):
            best[worker] = score
    return best
