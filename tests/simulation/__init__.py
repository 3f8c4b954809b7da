"""The simulator: N cores in one process, a virtual clock, a seeded network, disks, liars, a judge."""
