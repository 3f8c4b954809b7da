"""The quorum log: one order for a cluster. Pure; what its items mean is decided elsewhere."""
