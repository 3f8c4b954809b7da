"""What a set of dumps proves about a ledger, on any Spark master, with GraphFrames."""
