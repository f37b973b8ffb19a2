"""Chat Completions: turns in, a message out."""
