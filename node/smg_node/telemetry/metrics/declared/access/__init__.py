"""Access metrics: issuers of tokens, their keys, and what is asked of them."""
