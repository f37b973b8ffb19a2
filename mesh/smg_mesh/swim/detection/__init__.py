"""Detection: probes, suspicions, refutation, name conflicts, and healing of partitions."""
