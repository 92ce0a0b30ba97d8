"""THE WHOLE under a seed: simulated log, clock, workers and faults."""
