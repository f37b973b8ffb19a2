"""Discovery parts: sources by the settings, the service that runs them, and what is counted of it."""
