"""The reference pages are what the code says."""

import pytest

from quipu.api.meanings import MEANINGS
from tests import tree
from tests.api.reference import PAGES, families


@pytest.mark.parametrize("path", PAGES)
def test_page_is_up_to_date(path: str) -> None:
    made = PAGES[path]().rstrip("\n") + "\n"
    assert tree.read(path) == made, "run `make reference`"


def test_every_figure_of_the_node_says_what_it_means() -> None:
    plain = [family.name.removeprefix("quipu_") for family in families()]
    shown = {name for name in plain if not name.startswith(("http_", "refused"))}
    assert shown == {name.removesuffix("_total") for name in MEANINGS}
