"""The names that apps give: of streams, sequences and consumers. One shape for all of them."""

import re

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,127}$"  # as OpenAPI has it: there $ is the end of all
NAME_RULE = "is 1 to 128 of a-z 0-9 . _ - and begins with a letter or digit"
_NAME = re.compile(NAME_PATTERN, re.ASCII)


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None
