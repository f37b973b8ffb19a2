"""Documents: replicated arrays of entries, one per owner, over Yjs (pycrdt), in epochs."""
