"""The command `quipu`."""

import sys

# Before anything is imported that an older Python cannot read.
if sys.version_info < (3, 11):  # noqa: UP036 - said in a sentence in place of a traceback
    sys.exit(
        "quipu needs Python 3.11 or newer, this is {}.{}. Install one, then: "
        "make install PYTHON=python3.11".format(*sys.version_info[:2])
    )
