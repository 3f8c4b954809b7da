"""A store whose structure is damaged: where others hold what it held, it is set aside, and the node
comes back as after a lost disk. A node that has nobody to ask is not started: an empty store in the
place of the only one would be a silent loss.
"""

from quipu.ledger.epochs import decode_genesis
from quipu.node.data_directory import DataDirectory
from quipu.node.exits import StoreUnusable
from quipu.node.logs import Log
from quipu.storage.backup import set_aside


def has_others(directory: DataDirectory) -> bool:
    """Whether the cluster was made with other members than this node."""
    members = decode_genesis(directory.genesis).members
    return any(member.node_id != directory.key.node_id for member in members)


def put_aside(directory: DataDirectory, log: Log, error: Exception) -> None:
    """The new store is marked as recovering, for the key has signed before. Raises StoreError."""
    aside = set_aside(directory.store_path)
    log.error(
        "the store is damaged and was set aside; this node begins with an empty one, and signs "
        "nothing before the other members have told it what they hold of it",
        why=str(error),
        aside=str(aside),
        next="when `quipu check` finds nothing wrong any more, the store that was set aside can go",
    )


def refused(error: Exception) -> StoreUnusable:
    return StoreUnusable(
        f"the store is damaged: {error}",
        "No other member is known to hold the rest, so nothing begins anew by itself. Look with "
        "`quipu store verify`; `quipu store restore --set-aside` puts a backup in its place. "
        "Without a backup: move the folder `store` away and start; what it held is lost.",
    )
