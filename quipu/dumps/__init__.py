"""The dump format `quipudump/1`: its tables, its manifest, and what makes a dump sound.

It needs neither a node nor a store: who writes dumps and who reads them both import it.
"""
