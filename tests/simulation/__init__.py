"""The simulator: N cores in one process, a virtual clock, seeded network, disks, liars, judge."""
