"""Strict ids, exactly once, and an end only by two valid signatures; beside a slow obvious twin."""

from hypothesis import given
from hypothesis import strategies as st

from quipu.ledger import limits
from quipu.ledger.order.clients import (
    ClientId,
    ClientRefusal,
    Clients,
    Due,
    Known,
    Request,
    Terminated,
    Verdict,
    Waits,
    signed_request,
)
from quipu.ledger.words import NodeId
from tests.small_ledger import key_of

CLUSTER_ID = bytes(range(32))
KEY = key_of("client")
ONE = ClientId(1)


def request(message_id: int, content: int = 0, client: ClientId = ONE) -> Request:
    unsigned = Request(client, message_id, bytes([content]) * 32, b"")
    return unsigned._replace(signature=KEY.sign(signed_request(CLUSTER_ID, unsigned)))


def registered() -> Clients:
    clients = Clients(CLUSTER_ID)
    assert clients.add(NodeId(KEY.node_id)) == ONE
    return clients


def run(clients: Clients, verdict: Verdict) -> list[int]:
    """Executes what is due; the result is the id."""
    assert isinstance(verdict, Due)
    for due in verdict.requests:
        clients.executed(due, b"%d" % due.message_id)
    return [due.message_id for due in verdict.requests]


def test_a_gap_waits_and_is_executed_in_order() -> None:
    clients = registered()
    assert clients.take(request(3)) == Waits()
    assert clients.take(request(2)) == Waits()
    assert clients.take(request(3)) == Known(None)
    assert run(clients, clients.take(request(1))) == [1, 2, 3]
    assert clients.take(request(2)) == Known(b"2")


def test_no_further_ahead_than_the_bound() -> None:
    clients = registered()
    assert clients.take(request(limits.CLIENT_AHEAD_MAX)) == Waits()
    beyond = clients.take(request(limits.CLIENT_AHEAD_MAX + 1))
    assert beyond is ClientRefusal.TOO_FAR_AHEAD
    assert clients.take(request(0)) is ClientRefusal.BAD_ID


def test_a_bad_signature_closes_nothing() -> None:
    clients = registered()
    run(clients, clients.take(request(1)))
    forged = request(1, content=9)._replace(signature=bytes(64))
    assert clients.take(forged) is ClientRefusal.BAD_SIGNATURE
    assert run(clients, clients.take(request(2))) == [2]


def test_two_valid_signatures_for_one_id_end_the_client() -> None:
    clients = registered()
    run(clients, clients.take(request(1)))
    assert clients.take(request(1, content=9)) == Terminated(request(1), request(1, content=9))
    assert clients.take(request(2)) is ClientRefusal.TERMINATED


def test_read_gives_and_deletes_what_the_client_holds() -> None:
    clients = registered()
    for number in (1, 2, 3):
        run(clients, clients.take(request(number)))
    assert clients.read(ONE, 2, 0) == [(1, b"1"), (2, b"2")]
    assert clients.read(ONE, 2, 0) == [(1, b"1"), (2, b"2")]  # a lost answer loses nothing
    assert clients.read(ONE, 9, 2) == [(3, b"3")]
    assert clients.read(ONE, 9, 0) == [(3, b"3")]
    assert clients.take(request(2)) is ClientRefusal.RELEASED
    assert clients.read(ONE, 9, 99) == []
    assert run(clients, clients.take(request(4))) == [4]
    assert clients.read(ClientId(7), 9, 0) == []


def test_ids_of_clients_are_never_given_again() -> None:
    clients = registered()
    clients.remove(ONE)
    assert clients.take(request(1)) is ClientRefusal.REMOVED
    assert clients.add(NodeId(KEY.node_id)) == 2
    assert clients.take(request(1, client=ClientId(9))) is ClientRefusal.UNKNOWN
    assert run(clients, clients.take(request(1, client=ClientId(2)))) == [1]


@given(st.lists(st.integers(1, 12), max_size=60))
def test_each_id_is_executed_once_and_in_order_whatever_comes(ids: list[int]) -> None:
    """The twin: of all ids that came, those without one missing below, each once."""
    clients = registered()
    done: list[int] = []
    for message_id in ids:
        verdict = clients.take(request(message_id))
        if isinstance(verdict, Due):
            done += run(clients, verdict)
    gapless = [i for i in range(1, 13) if all(j in ids for j in range(1, i + 1))]
    assert done == gapless
