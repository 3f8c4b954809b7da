"""The simulator: N cores in one process, a virtual clock, network, disks, liars, and a judge."""
