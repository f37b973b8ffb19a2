"""Which worker has which beginnings of prompts cached."""
