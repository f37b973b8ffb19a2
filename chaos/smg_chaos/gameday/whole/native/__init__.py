"""Native library (LD_PRELOAD) of a game day, in C: compiled when it is used."""
