"""The config stream: every change with its stages, one in flight, each refusal its own word."""

import pytest

from quipu.ledger.log.serializers import SerializerSet, Stage
from quipu.ledger.log.words import Index
from quipu.ledger.order.config import ADDING, ROLES, ConfigStream, Configured, NodeRole
from quipu.ledger.order.config_items import (
    FIRST_STAGES,
    LAST_STAGES,
    ConfigChange,
    ConfigKind,
    ConfigRefusal,
    ConfigStage,
    encode_change,
    read_config,
)
from quipu.ledger.refusals import Refused
from quipu.ledger.words import NodeNo

MEMBERS = (NodeNo(1), NodeNo(2))
ONE = NodeNo(1)


def item(kind: ConfigKind, stage: ConfigStage, *nodes: int) -> ConfigChange:
    found = read_config(encode_change(kind, stage, nodes))
    assert found is not None
    return found


def begun(stream: ConfigStream, kind: ConfigKind, index: int, *nodes: int) -> object:
    return stream.apply(item(kind, FIRST_STAGES[kind], *nodes), Index(index))


def word_of(stream: ConfigStream) -> str:
    assert stream.newest is not None
    return stream.newest.stage


@pytest.mark.parametrize(
    "kind", [kind for kind in ConfigKind if kind is not ConfigKind.SERIALIZERS]
)
def test_every_role_is_added_and_removed_by_its_stages(kind: ConfigKind) -> None:
    stream, role = ConfigStream(), ROLES[kind]
    if kind in ADDING:
        stream._deviants[ONE, role] = False
    assert stream.has(ONE, role) != (kind in ADDING)
    assert isinstance(begun(stream, kind, 5, 1), Configured)
    last = LAST_STAGES.get(FIRST_STAGES[kind])
    if last is not None:
        assert stream.in_flight is not None
        assert stream.has(ONE, role) != (kind in ADDING)
        stream.apply(item(kind, last, 1), Index(6))
    assert stream.in_flight is None
    assert stream.has(ONE, role) == (kind in ADDING)
    assert begun(stream, kind, 7, 1) is ConfigRefusal.ALREADY_SO


def without_executor() -> ConfigStream:
    stream = ConfigStream()
    begun(stream, ConfigKind.REMOVE_EXECUTOR, 1, 1)
    return stream


def test_an_executor_begins_with_catchup_and_is_none_after_refuse_or_implement() -> None:
    stream = without_executor()
    assert [stream.executes(number) for number in MEMBERS] == [False, *[True] * (len(MEMBERS) - 1)]
    begun(stream, ConfigKind.ADD_EXECUTOR, 3, 1)
    assert stream.executes(ONE)
    stream.apply(item(ConfigKind.ADD_EXECUTOR, ConfigStage.REFUSE, 1), Index(4))
    assert not stream.executes(ONE)
    last = item(ConfigKind.REMOVE_EXECUTOR, ConfigStage.IMPLEMENT, 2)
    assert stream.refusal(last, MEMBERS[:2], MEMBERS) is ConfigRefusal.LAST_NODE


def test_one_change_is_in_flight() -> None:
    stream = without_executor()
    begun(stream, ConfigKind.ADD_EXECUTOR, 3, 1)
    for kind in ConfigKind:
        assert begun(stream, kind, 4, 2) is ConfigRefusal.IN_FLIGHT
        wanted = item(kind, FIRST_STAGES[kind], 2)
        assert stream.refusal(wanted, MEMBERS, MEMBERS) is ConfigRefusal.IN_FLIGHT


def test_a_blocked_node_takes_nothing_and_comes_back_by_no_stage_of_another() -> None:
    stream = ConfigStream()
    begun(stream, ConfigKind.REMOVE_INGEST, 3, 1)
    assert not stream.takes_entries(ONE)
    assert stream.takes_entries(NodeNo(2))
    strange = item(ConfigKind.REMOVE_INGEST, ConfigStage.DROP, 2)
    assert stream.apply(strange, Index(4)) is ConfigRefusal.WRONG_STAGE
    live = item(ConfigKind.REMOVE_INGEST, ConfigStage.LIVE, 1)
    assert stream.apply(live, Index(4)) is ConfigRefusal.WRONG_STAGE
    stream.apply(item(ConfigKind.REMOVE_INGEST, ConfigStage.DROP, 1), Index(5))
    assert (word_of(stream), stream.takes_entries(ONE)) == ("drop", False)
    wanted = item(ConfigKind.REMOVE_INGEST, ConfigStage.BLOCK, 2)
    assert stream.refusal(wanted, MEMBERS, MEMBERS) is ConfigRefusal.LAST_NODE


def test_a_node_that_does_not_catch_up_is_refused() -> None:
    stream = without_executor()
    begun(stream, ConfigKind.ADD_EXECUTOR, 3, 1)
    stream.apply(item(ConfigKind.ADD_EXECUTOR, ConfigStage.REFUSE, 1), Index(4))
    assert stream.newest is not None
    assert (stream.newest.stage, stream.newest.refusal) == ("refuse", ConfigRefusal.NOT_CAUGHT_UP)
    assert stream.in_flight is None
    assert not stream.has(ONE, NodeRole.EXECUTOR)


def test_a_wish_for_serializers_ends_with_the_stages_of_the_log() -> None:
    stream = ConfigStream()
    assert stream.set_moved(SerializerSet(Stage.NOMINATE, [1, 2]), Index(2)) is None
    begun(stream, ConfigKind.SERIALIZERS, 3, 1, 2)
    assert stream.set_moved(SerializerSet(Stage.CONFIRM, [1, 3]), Index(4)) is None
    for at, stage in enumerate((Stage.NOMINATE, Stage.IMPLEMENT, Stage.CONFIRM), start=5):
        assert stream.in_flight is not None
        stream.set_moved(SerializerSet(stage, [1, 2]), Index(at))
    assert (word_of(stream), stream.in_flight) == ("confirm", None)


@pytest.mark.parametrize(
    ("nominated", "why"), [(False, ConfigRefusal.ALREADY_SO), (True, ConfigRefusal.NOT_CAUGHT_UP)]
)
def test_why_a_set_was_refused(nominated: bool, why: ConfigRefusal) -> None:
    stream = ConfigStream()
    begun(stream, ConfigKind.SERIALIZERS, 3, 1, 2)
    if nominated:
        stream.set_moved(SerializerSet(Stage.NOMINATE, [1, 2]), Index(4))
    stream.set_moved(SerializerSet(Stage.REFUSE, [1, 2]), Index(5))
    assert stream.newest is not None
    assert stream.newest.refusal is why


def test_the_present_set_is_refused_before_it_is_asked_for() -> None:
    wanted = item(ConfigKind.SERIALIZERS, ConfigStage.WISH, 1, 2)
    assert ConfigStream().refusal(wanted, MEMBERS, MEMBERS) is ConfigRefusal.ALREADY_SO
    assert ConfigStream().refusal(wanted, MEMBERS, (ONE,)) is None


def test_the_state_comes_back_from_its_record() -> None:
    stream = ConfigStream()
    assert stream.record() == b""
    stream = without_executor()
    begun(stream, ConfigKind.ADD_EXECUTOR, 3, 1)
    stream.apply(item(ConfigKind.ADD_EXECUTOR, ConfigStage.LIVE, 1), Index(4))
    begun(stream, ConfigKind.REMOVE_EXECUTOR, 5, 2)
    begun(stream, ConfigKind.REMOVE_INGEST, 5, 2)
    stream.apply(item(ConfigKind.REMOVE_INGEST, ConfigStage.REFUSE, 2), Index(6))
    assert ConfigStream.of(stream.record()) == stream


@pytest.mark.parametrize(
    "data", [b"\x93\x10\x01\x01", b"\xff", encode_change(ConfigKind(2), ConfigStage(2), (1,))]
)
def test_a_record_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        ConfigStream.of(data)


@pytest.mark.parametrize(
    "data",
    [
        encode_change(ConfigKind.ADD_INGEST, ConfigStage.CATCHUP, (1, 2)),
        encode_change(ConfigKind.SERIALIZERS, ConfigStage.WISH, (2, 1)),
        encode_change(ConfigKind.SERIALIZERS, ConfigStage.WISH, ())[:-1] + b"\x90",
        b"\x94\x10\x09\x01\x91\x01",
        b"",
    ],
)
def test_what_is_no_change_is_passed_over(data: bytes) -> None:
    assert read_config(data) is None
