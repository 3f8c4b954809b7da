"""What the plain engine computes on the driver, beside slow and obvious ways. No Spark begins."""

from hypothesis import given
from hypothesis import strategies as st

from quipu.spark_analytics.engine_dataframe import core_of, least_labels, loops_of, ranks_of

PAIRS = st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), max_size=25)


def reach(pairs: list[tuple[int, int]], start: int) -> set[int]:
    """Everything that lies one or more steps further."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        vertex = waiting.pop()
        new = {b for a, b in pairs if a == vertex} - found
        found |= new
        waiting += sorted(new)
    return found


@given(PAIRS)
def test_loops_are_what_reaches_itself(pairs: list[tuple[int, int]]) -> None:
    vertices = sorted({v for pair in pairs for v in pair})
    on_loops = {v for v in vertices if v in reach(pairs, v)}
    found = loops_of(pairs)
    assert {v for loop in found for v in loop} == on_loops
    for loop in found:
        assert all(other in reach(pairs, loop[0]) for other in loop)


@given(PAIRS)
def test_labels_are_the_least_of_a_component(pairs: list[tuple[int, int]]) -> None:
    both = [*pairs, *((b, a) for a, b in pairs)]
    for vertex, label in least_labels(pairs).items():
        assert label == min(reach(both, vertex))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9)), max_size=12))
def test_ranks_share_one_whole(pairs: list[tuple[int, int, int]]) -> None:
    ranks = ranks_of(pairs)
    assert set(ranks) == {v for above, below, _ in pairs for v in (above, below)}
    assert not ranks or abs(sum(ranks.values()) - 1) < 1e-9


def test_a_long_loop_needs_no_recursion() -> None:
    ring = [(n, (n + 1) % 20_000) for n in range(20_000)]
    ((*loop,),) = loops_of(ring)
    assert loop == list(range(20_000))


@given(PAIRS, PAIRS)
def test_the_core_is_what_lies_between_loops(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    edges = [("n1", *pair) for pair in one] + [("n2", *pair) for pair in other]
    expected = set()
    for copy, pairs in (("n1", one), ("n2", other)):
        loops = {v for v, _ in pairs if v in reach(pairs, v)}
        for child, parent in pairs:
            is_led_to = any(child in {v, *reach(pairs, v)} for v in loops)
            if is_led_to and loops & {parent, *reach(pairs, parent)}:
                expected.add((copy, child, parent))
    assert core_of(edges) == sorted(expected)
