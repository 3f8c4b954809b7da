"""Why a node cannot listen: what is wrong, and what to do next."""

import errno

from quipu.p2p.words import Endpoint


class CannotListen(Exception):
    """One sentence of what is wrong, one of what to do next."""

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


class AddressTaken(CannotListen):
    """Something else listens there."""


class AddressNotLocal(CannotListen):
    """No address of this machine."""


class PortPrivileged(CannotListen):
    """Below 1024, and this user may not."""


class AddressUnusable(CannotListen):
    """No IP address, no port, or something that the system has no clearer word for."""


def cannot_listen(endpoint: Endpoint, error_number: int | None, words: str) -> CannotListen:
    """The refusal for what the system said."""
    match error_number:
        case errno.EADDRINUSE:
            return AddressTaken(
                f"{endpoint} is in use by another process",
                "End that process, or set another port for peers.",
            )
        case errno.EADDRNOTAVAIL:
            return AddressNotLocal(
                f"{endpoint.host} is not an address of this machine",
                "Listen on one of its own addresses, or on 0.0.0.0, and advertise the other one.",
            )
        case errno.EACCES:
            return PortPrivileged(
                f"this user may not listen on port {endpoint.port}",
                "Choose a port from 1024 on, or give the service CAP_NET_BIND_SERVICE.",
            )
        case _:
            return AddressUnusable(
                f"cannot listen on {endpoint}: {words}",
                "Give an IP address of this machine and a port from 0 to 65535.",
            )
