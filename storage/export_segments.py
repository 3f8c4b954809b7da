"""Files of events, each written while the events of the next are read.

Compression, hashing and the disk's own pace need no Python: they take place beside it.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from quipu.dumps import limits
from quipu.dumps.manifest import DumpFile
from quipu.dumps.segments import write_table
from quipu.storage import limits as storage_limits
from quipu.storage.export_columns import EventColumns

Written = Callable[[list[DumpFile]], None]


class SegmentWriter:
    """Invariant: at most one segment is being written; what is told of it is told in order."""

    def __init__(self, target: Path, columns: EventColumns) -> None:
        self._target = target
        self.columns = columns
        self._pool = ThreadPoolExecutor(1, "export")
        self._under_way: tuple[Future[list[DumpFile]], Written] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    @property
    def is_full(self) -> bool:
        columns = self.columns
        return (
            columns.event_count >= limits.SEGMENT_EVENTS_MAX
            or columns.entry_count >= limits.SEGMENT_ENTRIES_MAX
            or columns.bytes >= limits.SEGMENT_BYTES_MAX
        )

    @property
    def room(self) -> int:
        """How many events to read before it is asked whether it is full."""
        left = limits.SEGMENT_EVENTS_MAX - self.columns.event_count
        return min(storage_limits.EXPORT_READ_TOGETHER, left)

    def begin(self, stem: str, written: Written) -> None:
        """What has been added becomes files; `written` is called when they are whole."""
        self.finish()
        if self.columns.event_count:
            tables = self.columns.taken()
            self._under_way = self._pool.submit(_write, self._target, stem, tables), written

    def finish(self) -> None:
        """Waits for what is under way. Raises what its writing did."""
        if self._under_way is not None:
            (future, written), self._under_way = self._under_way, None
            written(future.result())


def _write(target: Path, stem: str, tables: dict[str, pa.Table]) -> list[DumpFile]:
    return [write_table(target, table, stem, rows) for table, rows in tables.items()]
