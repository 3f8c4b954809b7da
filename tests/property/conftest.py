"""How hypothesis runs here."""

from hypothesis import settings

# By the clock alone: a machine with other work on it is no finding.
settings.register_profile("quipu", deadline=None)
settings.load_profile("quipu")
