"""World: hosts, links, cores and streams on one virtual clock, with checkers at every step."""
