"""The running program: configuration, keys, and the one loop that joins core, store and peers."""
