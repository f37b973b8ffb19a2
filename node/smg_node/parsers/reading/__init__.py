"""Reading: incremental reader, scanner and answer grammar that all formats share."""
