"""Workers: the lifecycle of each worker: connecting, registering, probing, subscriptions, roles."""
