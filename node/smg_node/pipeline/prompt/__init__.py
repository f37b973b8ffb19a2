"""Prompt: from prompt to checked token ids: rendering, encoding, bounds, loop budget."""
