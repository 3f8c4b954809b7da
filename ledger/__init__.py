"""Decides: the pure core. No I/O, no clock, no randomness, no async."""
