"""Provider side of Chat Completions as vendors serve it: writer, listener and judge."""
