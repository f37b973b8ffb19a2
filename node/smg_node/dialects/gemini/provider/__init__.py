"""Provider side of generateContent as vendors serve it: writer, listener and judge."""
