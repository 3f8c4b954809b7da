"""Worlds of cores and their logs: epochs change as the log says, and nobody opens them by hand."""
