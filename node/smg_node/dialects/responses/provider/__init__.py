"""Provider side of Responses as vendors serve it: writer, listener and judge."""
