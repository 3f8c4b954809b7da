"""Structured logs on stderr: for people on a terminal, JSON lines elsewhere."""

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, TextIO

import structlog

from quipu.node.settings import LogSettings

Log = structlog.typing.FilteringBoundLogger
AUDIT = "quipu.audit"  # the logger whose lines are written at every level
FACTS = "facts"  # of a line of the standard module, beside its text
DEFAULT_LEVEL = LogSettings().level


class Threshold:
    """The least that is written; it may be moved while the node runs."""

    def __init__(self, level: str = DEFAULT_LEVEL) -> None:
        self.level = level
        self._least = logging.getLevelNamesMapping()[level.upper()]

    def move(self, level: str) -> None:
        self.level = level
        self._least = logging.getLevelNamesMapping()[level.upper()]
        logging.getLogger().setLevel(self._least)

    def __call__(
        self, _: object, name: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        least = logging.getLevelNamesMapping()[name.upper()]
        if least < self._least and event.get("logger") != AUDIT:
            raise structlog.DropEvent
        return event


def open_log(
    settings: LogSettings, stream: TextIO | None = None, threshold: Threshold | None = None
) -> Log:
    out = stream or sys.stderr
    is_json = settings.format == "json" or (settings.format == "auto" and not out.isatty())
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if is_json
        else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    processors: list[structlog.typing.Processor] = [
        threshold or Threshold(settings.level),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if is_json:
        processors.append(structlog.processors.ExceptionRenderer())
    log: Log = structlog.wrap_logger(
        Lines(out),
        processors=[*processors, last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        cache_logger_on_first_use=True,
    )
    return log


class Lines:
    """What is done does not fail because nobody reads any more that it was done."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = Lock()

    def msg(self, line: str) -> None:
        with self._lock, suppress(OSError, ValueError):  # its reader has gone; it was closed
            self._out.write(line + "\n")
            self._out.flush()

    debug = info = warning = error = critical = msg


class Bridge(logging.Handler):
    """Lines of libraries and of the API, in the form of all others."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        facts: Mapping[str, Any] = getattr(record, FACTS, {})
        self._log.log(
            record.levelno,
            record.getMessage(),
            logger=record.name,
            exc_info=record.exc_info,
            **facts,
        )


def bridge(log: Log, settings: LogSettings) -> None:
    """Everything that goes by the standard module goes to `log` from now on."""
    logging.basicConfig(level=settings.level.upper(), handlers=[Bridge(log)], force=True)
    logging.getLogger(AUDIT).setLevel(logging.INFO)
