"""What ends a command about a devnet: what is wrong, and what to do next."""

from quipu.node.exits import CannotStart, Exit


class DevnetFailed(CannotStart):
    """A node did not do what it was asked to in time."""


class DevnetTaken(CannotStart):
    code = Exit.CONFLICT


class NoDevnet(CannotStart):
    code = Exit.NOT_FOUND


class WrongNode(CannotStart):
    """Names a node that is not there, or parts the nodes in a way that makes no sense."""

    code = Exit.USAGE
