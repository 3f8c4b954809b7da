"""What a node decides: pure state machines; no I/O, no clock, no randomness."""
