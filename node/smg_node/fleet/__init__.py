"""Fleet: the workers this node knows, their health, their load and the models they serve."""
