"""An executor that runs turns until it is killed, and says each time what it may be held to.

Arguments: its directory, a place of a turn, and at which passing of that place it kills itself.
"""

import os
import signal
import sys
from pathlib import Path

from quipu.storage.executors.acl import EVERYTHING, encode_acl
from quipu.storage.executors.interpreter import statement
from quipu.storage.executors.request import AddClient, LogIndex, Message, Ordered, Read, Request
from quipu.storage.executors.sqlite_executor import SqliteExecutor

CLUSTER = bytes(range(32))
TURNS = 120
REQUESTS = 3  # a turn


def turn(number: int) -> list[Ordered]:
    """The commands of one log index; number 1 makes the client and its tables."""
    at = LogIndex(number)
    if number == 1:
        table = statement("CREATE TABLE counted (request INTEGER PRIMARY KEY, times INT)")
        add = AddClient(1, encode_acl(EVERYTHING))
        return [Ordered(at, add), Ordered(at, Request(1, 1, (table,)))]
    first = 2 + (number - 2) * REQUESTS
    requests = [
        Ordered(at, Request(1, message_id, _counted(message_id)))
        for message_id in range(first, first + REQUESTS)
    ]
    # Results of the turn before the last are given back, so that they come and go.
    return [*requests, Ordered(at, Read(1, first, max(0, first - 2 * REQUESTS)))]


def _counted(message_id: int) -> tuple[Message, ...]:
    count = statement(
        "INSERT INTO counted VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1", message_id
    )
    if message_id % 5 == 0:  # fails, and undoes what it did
        return (count, statement("INSERT INTO counted VALUES (1, NULL), (1, NULL)"))
    return (count, statement("SELECT count(*) FROM counted"))


def main() -> None:
    directory, site, passings = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    passed = 0

    def passing(at: str) -> None:
        nonlocal passed
        passed += at == site
        if at == site and passed == passings:
            os.kill(os.getpid(), signal.SIGKILL)

    executor = SqliteExecutor(directory, CLUSTER, passing=passing)
    for number in range(executor.position().applied.at + 1, TURNS + 1):
        executor.apply(turn(number), LogIndex(number))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
