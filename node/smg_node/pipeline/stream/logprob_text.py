"""Logprob text: turns log probabilities of token ids into log probabilities of token texts. Pure."""

from smg_node.core.generation.events import TokenLogprob, TopLogprob
from smg_node.engines.chunk import IdLogprob
from smg_node.tokens.tokenizer import Tokenizer


def spell_logprob(logprob: IdLogprob, tokenizer: Tokenizer) -> TokenLogprob:
    """Return a log probability with its tokens spelled out."""
    return TokenLogprob(
        token_id=logprob.token_id,
        token=tokenizer.token_text(logprob.token_id),
        raw=tokenizer.token_bytes(logprob.token_id),
        logprob=logprob.logprob,
        top=tuple(
            TopLogprob(
                token_id, tokenizer.token_text(token_id), tokenizer.token_bytes(token_id), value
            )
            for token_id, value in logprob.top
        ),
    )
