"""Items of the Responses API: item documents, their types, and groups that stay together."""
