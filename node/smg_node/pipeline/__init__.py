"""One generation from request to events, in order."""
