"""Structured logs on stderr: for people on a terminal, JSON lines elsewhere."""

import logging
import sys
from typing import TextIO

import structlog

from quipu.node.settings import LogSettings

Log = structlog.typing.FilteringBoundLogger


def open_log(settings: LogSettings, stream: TextIO | None = None) -> Log:
    out = stream or sys.stderr
    is_json = settings.format == "json" or (settings.format == "auto" and not out.isatty())
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if is_json
        else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if is_json:
        processors.append(structlog.processors.ExceptionRenderer())
    log: Log = structlog.wrap_logger(
        structlog.WriteLogger(out),
        processors=[*processors, last],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.level.upper()]
        ),
        cache_logger_on_first_use=True,
    )
    return log


class Bridge(logging.Handler):
    """Lines of libraries and of the API, in the form of all others."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.log(
            record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info
        )


def bridge(log: Log, settings: LogSettings) -> None:
    """Everything that goes by the standard module goes to `log` from now on."""
    logging.basicConfig(level=settings.level.upper(), handlers=[Bridge(log)], force=True)
