"""Reports of data processes to their control process: metrics, usage, journeys, open work."""
