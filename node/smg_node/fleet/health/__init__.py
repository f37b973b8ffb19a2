"""Health of workers: probes, verdicts of peers, circuit breaker and backpressure."""
