"""Max-min fairness: splits a short amount: small needs are met whole, others get equal parts."""

from collections.abc import Sequence


def split_fairly(amount: int, needs: Sequence[int]) -> list[int]:
    """Return for each need what it gets: max-min fair, whole units, all of `amount` if needs reach it.

    Units that do not divide go to the first of those with equal parts.
    """
    # Mostly there is enough: who asks for the least is never above the equal part, nor who comes after it.
    if sum(needs) <= amount and min(needs, default=0) >= 0:
        return list(needs)
    gets = [0] * len(needs)
    order = sorted(range(len(needs)), key=lambda index: (needs[index], -index))
    left = max(0, amount)
    for position, index in enumerate(order):
        part = left // (len(order) - position)
        gets[index] = min(max(0, needs[index]), part)
        left -= gets[index]
    return gets
