"""State machines over the quorum log: each takes the same items in the same order everywhere."""
