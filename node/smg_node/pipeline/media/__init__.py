"""Pictures of a prompt on their way to an engine: got, planned, worked on in threads, finished for the chosen worker."""
