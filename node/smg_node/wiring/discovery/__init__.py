"""Discovery parts: sources by the settings, the desk that runs them, and what is counted of it."""
