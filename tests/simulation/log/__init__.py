"""Worlds of logs on a virtual clock, and a judge that shares none of their decisions."""
