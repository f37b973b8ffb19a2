"""Tokens: text to token ids and back, cached on the way in and incremental on the way out."""
