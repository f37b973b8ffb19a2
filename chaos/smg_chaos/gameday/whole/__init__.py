"""A whole game day: a cluster in daily use, every kind of fault by seed, and the promises that clients hold it to."""
