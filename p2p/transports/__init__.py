"""Transports: the I/O of the peer protocol. The real one is over ZeroMQ."""
