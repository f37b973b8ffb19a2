"""Retention: how much of a conversation stays in the prompt when it is too long. Pure.

With `auto` the oldest groups of items go until the rest fits. With a ratio more goes than must, so that a prompt keeps its
beginning, and with it the engine's cache, for several turns.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """Rule of truncation. `ratio` is the share of what may stay that does stay once something has to go; 1.0 is `auto`.

    `post_instructions` is the most tokens of a conversation, its instructions and tools not counted; None for as many as
    the context holds.
    """

    ratio: float = 1.0
    post_instructions: int | None = None

    def prompt_max(self, budget: int, *, instructions: int) -> int:
        """Return how many tokens a prompt may have before anything is left out.

        `budget` leaves room for the answer in the context; `instructions` are the tokens of instructions and tools.
        """
        if self.post_instructions is None:
            return budget
        return min(budget, instructions + self.post_instructions)

    def prompt_kept(self, budget: int, *, instructions: int) -> int:
        """Return how many tokens a prompt may have at most when something is left out, because it had more than `prompt_max`."""
        most = self.prompt_max(budget, instructions=instructions)
        conversation = max(most - instructions, 0)
        return min(most, instructions + int(conversation * self.ratio))


AUTO = Retention()
"""The oldest groups go, and no more of them than must."""
