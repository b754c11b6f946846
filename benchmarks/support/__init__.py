"""What several benchmarks share: real data sets, peers, ladders of tolerances."""
