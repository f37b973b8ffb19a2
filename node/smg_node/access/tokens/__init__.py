"""Signed tokens of other issuers as credentials: their heads, keys and claims, and the identities behind them."""
