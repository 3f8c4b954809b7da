import io
import json
import logging
import os
from typing import Literal

import pytest

from quipu.node.exits import Exit
from quipu.node.logs import AUDIT, FACTS, Bridge, Threshold, open_log
from quipu.node.program import _stop_hard
from quipu.node.settings import LogSettings


def lines(out: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_json_where_nobody_watches() -> None:
    out = io.StringIO()
    log = open_log(LogSettings(), out)
    log.debug("unheard")
    log.info("heard", node="n1")
    (line,) = lines(out)
    assert (line["event"], line["node"], line["level"]) == ("heard", "n1", "info")
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("form", ["console", "json"])
def test_an_exception_is_told_whole(form: Literal["console", "json"]) -> None:
    out = io.StringIO()
    try:
        raise ValueError("planted")
    except ValueError as error:
        open_log(LogSettings(format=form), out).error("failed", exc_info=error)
    assert "planted" in out.getvalue()
    assert "Traceback" in out.getvalue()


def test_what_goes_by_the_standard_module_takes_the_same_form() -> None:
    out = io.StringIO()
    bridged = Bridge(open_log(LogSettings(), out))
    record = logging.LogRecord("aiohttp", logging.WARNING, "", 0, "slow %s", ("peer",), None)
    bridged.handle(record)
    (line,) = lines(out)
    assert (line["event"], line["logger"], line["level"]) == ("slow peer", "aiohttp", "warning")


def test_a_log_that_was_closed_fails_nobody() -> None:
    out = io.StringIO()
    log = open_log(LogSettings(), out)
    bridged = Bridge(log)
    out.close()
    log.info("running")
    bridged.handle(logging.LogRecord(AUDIT, logging.INFO, "", 0, "admin verb", (), None))


def test_a_stop_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    out = io.StringIO()
    _stop_hard(open_log(LogSettings(), out))
    assert ended == [Exit.FAILURE]
    assert "took too long" in lines(out)[0]["event"]


def test_the_level_moves_while_the_node_runs() -> None:
    out, threshold = io.StringIO(), Threshold("warning")
    log = open_log(LogSettings(level="warning"), out, threshold)
    log.info("unheard")
    before = logging.getLogger().level
    try:
        threshold.move("debug")
        assert (threshold.level, logging.getLogger().level) == ("debug", logging.DEBUG)
    finally:
        logging.getLogger().setLevel(before)
    log.debug("heard")
    assert [line["event"] for line in lines(out)] == ["heard"]


def test_the_audit_is_written_at_every_level() -> None:
    out = io.StringIO()
    bridged = Bridge(open_log(LogSettings(level="error"), out, Threshold("error")))
    for name in ("quipu.api", AUDIT):
        record = logging.LogRecord(name, logging.INFO, "", 0, "admin verb", (), None)
        setattr(record, FACTS, {"who": "uid 7"})
        bridged.handle(record)
    (line,) = lines(out)
    assert (line["logger"], line["who"]) == (AUDIT, "uid 7")
