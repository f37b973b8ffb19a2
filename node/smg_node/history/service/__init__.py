"""Service: responses and conversations as the HTTP API calls them, built lazily from settings."""
