"""Executors: what the order says, done once in a database of one's own."""
