"""Request bodies of the Responses API, and their conversion into generation requests."""
