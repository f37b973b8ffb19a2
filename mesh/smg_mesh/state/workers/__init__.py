"""Workers: the cluster's workers, what nodes say of their health and load, and sticky keys."""
