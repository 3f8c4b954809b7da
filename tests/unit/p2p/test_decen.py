import pytest

from quipu.p2p import limits
from quipu.p2p.decen import Hello, Join, encode_command, is_pool_name
from quipu.p2p.words import PoolName


@pytest.mark.parametrize("name", ["a", "Orders", "two words", "p" * 255, "é" * 127, "=", "0"])
def test_a_pool_may_be_called(name: str) -> None:
    assert is_pool_name(name)


@pytest.mark.parametrize("name", ["", "p" * 256, "é" * 128, "a\n", "\x1b[m", "\x7f", "\ud800"])
def test_a_pool_may_not_be_called(name: str) -> None:
    assert not is_pool_name(name)


def test_what_cannot_be_said_is_not_said() -> None:
    """Whoever takes a name or joins a pool has asked before: these are mistakes of the program."""
    pools = tuple(PoolName(str(i)) for i in range(limits.POOLS_MAX + 1))
    for command, error in (
        (Join(0, PoolName("p" * 256), 0), AssertionError),
        (Hello(0, "n1", 1, pools, 0, ()), AssertionError),
        (Join(65536, PoolName("p"), 0), OverflowError),
        (Join(0, PoolName("p"), 256), ValueError),
    ):
        with pytest.raises(error):
            encode_command(command)
