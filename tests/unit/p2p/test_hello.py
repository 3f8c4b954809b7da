import pytest

from quipu.p2p import hello, limits
from quipu.p2p.decen import Hello
from quipu.p2p.refusals import Cause, FrameRefused
from tests.peer_samples import (
    CLUSTER_ID,
    OLD_SECRET,
    POOLS,
    SECRET,
    START,
    card_of,
    endpoint_of,
    hello_of,
    link_key,
)
from tests.small_ledger import key_of


def told(command: Hello, **changes: str) -> Hello:
    headers = dict(command.headers) | {k.replace("_", "-"): v for k, v in changes.items()}
    rest = (command.host, command.port, command.pools, command.status)
    return Hello(command.sequence, *rest, tuple(headers.items()))


def test_a_greeting_says_who_and_where() -> None:
    found = hello.verify_hello(hello_of("n1", "n2"), link_key("n1"), card_of("n2"))
    assert found == hello.Greeting(
        key_of("n1").node_id, "n1", START, "0.1.0", 1, endpoint_of("n1"), POOLS
    )


def test_secrets_rotate_in_any_order_of_nodes() -> None:
    """First every node holds both, then every node drops the old one: it never stops."""
    for sender in ((OLD_SECRET,), (SECRET, OLD_SECRET)):
        for receiver in ((OLD_SECRET,), (SECRET, OLD_SECRET)):
            greeting = hello_of("n1", "n2", *sender)
            hello.verify_hello(greeting, link_key("n1"), card_of("n2", *receiver))


def test_an_overlap_of_versions_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hello, "PROTOCOL_MIN", 2)
    monkeypatch.setattr(hello, "PROTOCOL_MAX", 4)
    for lowest, highest, common in ((1, 2, 2), (3, 9, 4), (2, 3, 3), (4, 4, 4), (1, 255, 4)):
        said = told(hello_of("n1", "n2"), protocol_min=str(lowest), protocol_max=str(highest))
        assert hello.verify_hello(said, link_key("n1"), card_of("n2")).protocol == common
    for lowest, highest in ((1, 1), (5, 9)):
        said = told(hello_of("n1", "n2"), protocol_min=str(lowest), protocol_max=str(highest))
        with pytest.raises(FrameRefused) as caught:
            hello.verify_hello(said, link_key("n1"), card_of("n2"))
        assert caught.value.cause is Cause.NO_COMMON_VERSION
        assert f"it speaks {lowest} to {highest}, this node 2 to 4" in caught.value.detail


def test_headers_of_later_versions_are_carried() -> None:
    said = told(hello_of("n1", "n2"), compression="zstd")
    hello.verify_hello(said, link_key("n1"), card_of("n2"))


def test_a_hello_heard_elsewhere_is_worth_nothing() -> None:
    """Recorded, and sent again by another node, or to another one."""
    said = hello_of("n1", "n2")
    for key, receiver, cause in (
        ("liar", "n2", Cause.WRONG_KEY),
        ("n1", "n3", Cause.WRONG_SECRET),
    ):
        with pytest.raises(FrameRefused) as caught:
            hello.verify_hello(said, link_key(key), card_of(receiver))
        assert caught.value.cause is cause


def test_a_card_shows_no_secret() -> None:
    card = card_of("n1")
    assert card.cluster_id == CLUSTER_ID
    assert repr(SECRET) not in repr(card)
    assert "secrets" not in repr(card)


def test_as_many_secrets_as_fit_a_header() -> None:
    secrets = [bytes([i]) * 32 for i in range(limits.SECRETS_MAX)]
    said = dict(hello_of("n1", "n2", *secrets).headers)
    assert len("hmac=" + said["hmac"]) <= limits.TEXT_BYTES_MAX
    with pytest.raises(AssertionError):
        hello_of("n1", "n2", *secrets, SECRET)
