"""Measures. Each module prints figures beside the machine's own limits, taken in the same run."""
