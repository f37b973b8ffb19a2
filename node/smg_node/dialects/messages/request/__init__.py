"""Request bodies of the Messages API, and their conversion into generation requests."""
