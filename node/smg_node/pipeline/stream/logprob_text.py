"""Logprob text: turns log probabilities of token ids into log probabilities of token texts. Pure."""

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import TokenLogprob, TopLogprob
from smg_node.engines.chunk import IdLogprob
from smg_node.engines.transport.grpc_status import LOGPROBS_MISSING_CODE
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


def missing_logprobs(of: str) -> SmgError:
    """Return the error for an engine that left out log probabilities: a short list would be read as a whole one."""
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        f"the engine did not send the log probabilities of {of} that it was asked for",
        code=LOGPROBS_MISSING_CODE,
    )
