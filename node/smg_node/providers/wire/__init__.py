"""Wire forms of calls to vendors and of their answers: URLs, bodies, the headers that pass, places in JSON."""
