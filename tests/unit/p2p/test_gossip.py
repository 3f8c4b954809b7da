import msgspec
import pytest

from quipu.ledger.signing import verify
from quipu.p2p import gossip, limits
from quipu.p2p.bodies import HealthQuery
from quipu.p2p.refusals import Cause, FrameRefused
from quipu.p2p.words import Start
from tests.peer_samples import CLUSTER_ID, FOREIGN, N2, N3, leaving, messages, origin
from tests.small_ledger import key_of


def test_an_id_is_a_start_and_a_number() -> None:
    identity = gossip.gossip_id(Start(2**64 - 1), 3)
    assert len(identity) == 16
    assert gossip.start_of(identity) == 2**64 - 1
    assert gossip.number_of(identity) == 3
    assert gossip.gossip_id(Start(1), 2**64 - 1) < gossip.gossip_id(Start(2), 0)


def test_a_message_is_composed_by_its_kind() -> None:
    message = gossip.compose_body(origin(number=7), HealthQuery(N3), N2, 2)
    assert (message.kind, message.action) == (gossip.Kind.HEALTH_QUERY, gossip.Action.TELL_HEALTH)
    assert (message.target, message.hop_limit) == (N2, 2)
    assert gossip.number_of(message.id) == 7
    assert gossip.body_of(message) == HealthQuery(N3)
    assert not gossip.has_valid_signature(message, CLUSTER_ID, verify)
    message = gossip.signed(message, CLUSTER_ID, key_of("n1"))
    assert gossip.rule_of(message).body is HealthQuery
    assert gossip.has_valid_signature(gossip.onward(message), CLUSTER_ID, verify)


def test_every_kind_has_a_rule_and_every_body_a_kind() -> None:
    assert set(gossip.RULES) == set(gossip.Kind)
    with_body = {kind for kind, rule in gossip.RULES.items() if rule.body is not None}
    assert with_body == set(gossip.KIND_OF_BODY.values())
    assert {gossip.Kind[n] for n in ("LEAVING", "POOL", "LEDGER", "LOG", "GENESIS")} == set(
        gossip.Kind
    ) - with_body


def test_what_is_believed_of_others_is_signed() -> None:
    direct = {"ACK", "ADDRESSES", "UNSUPPORTED", "VERSION_MISMATCH", "POOL", "LEDGER"}
    direct |= {"LOG", "GENESIS", "CAST_KEY", "CAST_REPORT"}
    unsigned = {gossip.Kind(kind).name for kind, rule in gossip.RULES.items() if not rule.is_signed}
    assert unsigned == direct


def test_an_unknown_kind_does_not_spoil_its_neighbours() -> None:
    known = messages()["lost"]
    unknown = msgspec.structs.replace(known, kind=200)
    data = gossip.join_content([gossip.encode_gossip(m) for m in (known, unknown, known)])
    assert gossip.decode_content(data) == [known, unknown, known]
    with pytest.raises(FrameRefused) as caught:
        gossip.rule_of(unknown)
    assert caught.value.cause is Cause.UNKNOWN_KIND


def test_leaving_is_understood_in_every_version() -> None:
    for version in (0, 1, 2, 255):
        said = leaving(version)
        data = gossip.join_content([FOREIGN, gossip.encode_gossip(said)])
        _, message = gossip.decode_content(data)
        assert message == said
        assert isinstance(message, gossip.Gossip)
        assert gossip.rule_of(message).action is gossip.Action.REMOVE
        assert gossip.has_valid_signature(message, CLUSTER_ID, verify)
        assert gossip.encode_gossip(gossip.onward(message)) != gossip.encode_gossip(message)


def test_contents_of_every_width_of_count() -> None:
    piece = gossip.encode_gossip(messages()["ledger"])
    for count in (0, 1, 15, 16, limits.CONTENT_MESSAGES_MAX):
        assert len(gossip.decode_content(gossip.join_content([piece] * count))) == count
    with pytest.raises(AssertionError):
        gossip.join_content([piece] * (limits.CONTENT_MESSAGES_MAX + 1))
