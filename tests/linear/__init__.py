"""Histories judged by somebody else: porcupine, a linearizability checker written in Go."""
