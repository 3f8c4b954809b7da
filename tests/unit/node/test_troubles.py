"""Why a peer is not linked: said once, in words with a next step, gone when it is up."""

import io
import json

import pytest

from quipu.node.logs import open_log
from quipu.node.settings import LogSettings
from quipu.node.troubles import REFUSALS, Troubles
from quipu.p2p.effects import Refusal, StateChanged
from quipu.p2p.refusals import Cause
from quipu.p2p.words import Endpoint, PeerState, PeerView
from tests.small_ledger import key_of

PEER, OTHER = key_of("n2").node_id, key_of("n3").node_id
WHERE = Endpoint("127.0.0.1", 8471)


class Noted:
    def __init__(self) -> None:
        self.stream = io.StringIO()
        log = open_log(LogSettings(format="json"), stream=self.stream)
        self.troubles = Troubles(log, "n1", Endpoint("10.0.0.1", 8471))

    @property
    def said(self) -> list[str]:
        return [json.loads(line)["what"] for line in self.stream.getvalue().splitlines()]


def view(name: str = "n2", linked_in: bool = False) -> PeerView:
    return PeerView(PEER, PeerState.ALIVE, WHERE, 1, None, (), linked_in, True, "0.1.0", name)


def test_a_peer_that_cannot_be_reached_is_said_once_until_it_was_up() -> None:
    noted = Noted()
    for _ in range(3):
        noted.troubles.link_closed(PEER, WHERE, "no connection within 1500 ms")
    assert "cannot reach it at 127.0.0.1:8471" in noted.troubles.of(PEER)
    assert len(noted.said) == 1
    noted.troubles.up(PEER, [view()])
    assert noted.troubles.of(PEER) == ""
    noted.troubles.link_closed(PEER, WHERE, "no connection within 1500 ms")
    assert len(noted.said) == 2


def test_the_end_of_a_link_that_was_open_is_no_trouble() -> None:
    noted = Noted()
    noted.troubles.link_closed(PEER, WHERE, "the connection ended")
    assert (noted.troubles.of(PEER), noted.said) == ("", [])


def test_who_has_left_is_not_expected_to_answer() -> None:
    noted = Noted()
    noted.troubles.moved(StateChanged(PEER, PeerState.ALIVE, PeerState.LEFT, "said so"))
    noted.troubles.link_closed(PEER, WHERE, "no connection: refused")
    assert noted.troubles.of(PEER) == ""
    noted.troubles.moved(StateChanged(PEER, PeerState.LEFT, PeerState.ALIVE, "frame"))
    noted.troubles.link_closed(PEER, WHERE, "no connection: refused")
    assert "cannot reach it" in noted.troubles.of(PEER)


@pytest.mark.parametrize("cause", REFUSALS)
def test_a_greeting_that_is_refused(cause: Cause) -> None:
    noted = Noted()
    noted.troubles.refused(Refusal(PEER, cause, "3 to 4"))
    assert noted.troubles.of(PEER) == f"{REFUSALS[cause]} (3 to 4)"
    noted.troubles.refused(Refusal(None, cause, ""))
    assert noted.said == [f"{REFUSALS[cause]} (3 to 4)", REFUSALS[cause]]


def test_what_is_refused_later_is_counted_alone() -> None:
    noted = Noted()
    noted.troubles.refused(Refusal(PEER, Cause.DUPLICATE, ""))
    assert (noted.troubles.of(PEER), noted.said) == ("", [])


def test_who_does_not_greet_back() -> None:
    noted = Noted()
    noted.troubles.look([view()])
    assert noted.troubles.of(PEER) == ""
    noted.troubles.look([view()])
    assert "does not greet back" in noted.troubles.of(PEER)
    assert "10.0.0.1:8471" in noted.troubles.of(PEER)


def test_who_greets_back_in_between_is_no_trouble() -> None:
    noted = Noted()
    for linked_in in (False, True, False):
        noted.troubles.look([view(linked_in=linked_in)])
    assert noted.troubles.of(PEER) == ""


def test_a_name_that_is_taken() -> None:
    noted = Noted()
    noted.troubles.up(PEER, [view("n1")])
    assert "its name n1 is taken" in noted.troubles.of(PEER)
    noted.troubles.up(PEER, [view("n2"), view("n2")._replace(peer=OTHER)])
    assert "its name n2 is taken" in noted.troubles.of(PEER)


def test_what_strangers_send_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from quipu.node import limits

    monkeypatch.setattr(limits, "TROUBLES_MAX", 4)
    noted = Noted()
    for number in range(20):
        noted.troubles.refused(Refusal(None, Cause.WRONG_CLUSTER, f"{number}" * 500))
    assert max(map(len, noted.said)) < 400
    assert len(noted.troubles._said) <= 4
