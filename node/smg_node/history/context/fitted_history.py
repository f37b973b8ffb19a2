"""Fitted history: the newest items of a history that leave room for the answer in the context of their model."""

from collections.abc import Sequence

from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.generate_request import generate_request_in_steps
from smg_node.history.context.history_loading import LoadedHistory
from smg_node.history.context.paced_steps import paced
from smg_node.history.context.truncation import Search, budget_of, layout_of, too_long
from smg_node.history.ports import Measure


async def fitted(
    hydrated: LoadedHistory, measure: Measure, texts: dict[str, str]
) -> Sequence[ItemDoc]:
    """Return the newest items that leave room for the answer."""
    items, ask = hydrated.items, hydrated.ask
    measure.check("truncation")
    if measure.context is None or not hydrated.history:
        return items
    budget = budget_of(measure.context, ask.sampling.max_tokens)
    layout = layout_of(items, new_from=hydrated.new_from)
    sizes = [len(item.document) for item in items]
    groups = [layout.stay, *layout.may_go]
    search = Search([sum(sizes[place] for place in group) for group in groups], budget)
    while (count := search.wanted) is not None:
        chosen = [items[place] for place in layout.places(count)]
        wish = await paced(generate_request_in_steps(ask, chosen, opened=texts, context=items))
        search.measured(count, await measure.count(wish.prompts[0]))
    if search.best is None:
        raise too_long(search.shortest or 0, budget, measure.context)
    return [items[place] for place in layout.places(search.best)]
