"""Inputs: what enters the core, in the past tense. One step takes all inputs of one turn."""

from dataclasses import dataclass

import msgspec

from quipu.ledger.words import NodeId, Ticket


class EntriesSubmitted(msgspec.Struct, frozen=True, gc=False):
    """Canonical bytes of entries that become part of one event, together and in order. One for
    each request of an app: a struct is made in 0.1 us, a frozen dataclass in 0.7."""

    ticket: Ticket
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PeerConnected:
    peer: NodeId


@dataclass(frozen=True, slots=True)
class PeerLost:
    peer: NodeId


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message of a peer whose identity the link has proven."""

    peer: NodeId
    data: bytes


@dataclass(frozen=True, slots=True)
class EpochClosed:
    """CLOSE is ordered: sign one last Inv of this epoch, naming it."""

    close: bytes


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """OPEN is ordered: the next epoch document with its cut, and the SEALs that it rests on."""

    document: bytes
    seals: tuple[bytes, ...]


Input = EntriesSubmitted | PeerConnected | PeerLost | MessageReceived | EpochClosed | EpochOpened
