"""Measured, never asserted: `python -m benchmarks` (or `make bench`) prints ratios against real contenders."""
