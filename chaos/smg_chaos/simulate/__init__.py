"""A whole cluster in one process: real cores, one virtual clock, one seed."""
