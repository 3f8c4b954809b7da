"""The reference pages are what the code says."""

import pytest

from tests import tree
from tests.api.reference import PAGES


@pytest.mark.parametrize("path", PAGES)
def test_page_is_up_to_date(path: str) -> None:
    made = PAGES[path]().rstrip("\n") + "\n"
    assert tree.read(path) == made, "run `make reference`"
