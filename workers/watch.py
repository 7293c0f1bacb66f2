"""Watch: follow the validator's own logs and its proxy's log, store what comes, grade what has been released.

Local text goes into the tables of `store.local` and nowhere else. No line of this process's log names a folder, a run
or a problem, and none counts them: a fault is told by its type alone.
"""

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from service.config import Settings
from service.domain.wire.envelopes import Envelope, EnvelopeKind
from service.errors import ErrorCode, SluiceError
from service.source.validator import envelopes, proxy_log
from service.source.validator.places import LOG_PATTERNS, Place
from service.source.validator.proxy_log import LogFormat
from service.source.validator.tail import Batch, Line, Position, Tail
from service.source.validator.waking import wakings
from service.store.engine import is_about_values, reading, transaction
from service.store.validator import gradings, local
from service.store.validator.local import NewEnvelope, NewLine, PositionRow
from workers.context import Context
from workers.grading import grade_due

LOGS, PROXY = "logs", "proxy"
FLOOR_SECONDS = 2.0
"""The files are looked at so often at least, whether a change was noticed or not."""
GRADE_SECONDS = 10.0
FORGET_SECONDS = 3_600.0
FAULT_SECONDS = 5.0
LONGEST_RUN_SECONDS = 3_600.0
"""An execution time beyond is not believed: the sandbox ends every run after half an hour."""
MOST_LINES_OF_A_FILE = 10_000
LARGEST_FILE_BYTES = 1 << 30
"""A run has some hundred items of 64 KiB at most, and may come back under its name."""

log = logging.getLogger(__name__)


def is_wanted(settings: Settings) -> bool:
    """Whether there is anything to follow."""
    return settings.validator_logs is not None or settings.proxy_log is not None


def require(settings: Settings) -> None:
    """Look at what can be wrong before anything starts.

    Raises:
        SluiceError: BAD_INPUT for a format in which no line of the proxy's log can be read.
    """
    if settings.proxy_log is not None:
        proxy_log.compile_format(settings.proxy_log_format)


def follow(context: Context) -> None:
    """Read and grade until the process is asked to stop.

    Raises:
        SluiceError: the files or the database cannot be used for now, or another worker has taken over. What was
            stored stands, and whoever follows next goes on there.
    """
    sources = _sources(context)
    clock = _Clock()
    try:
        for _ in wakings(context.settings.validator_logs, FLOOR_SECONDS, context.stopping):
            for source in sources:
                source.read(context)
            if clock.strikes("grade", GRADE_SECONDS):
                grade_due(context)
            if clock.strikes("forget", FORGET_SECONDS):
                with transaction(context.engine) as session:
                    gradings.mark_revised(session)
                    gradings.forget(session, context.now())
    except OSError as fault:
        raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"a log cannot be read ({type(fault).__name__})") from None
    except SQLAlchemyError as fault:
        raise SluiceError(ErrorCode.SERVICE_UNAVAILABLE, f"the database: {type(fault).__name__}") from None
    finally:
        for source in sources:
            source.close()


class _Clock:
    """When something was last done."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def strikes(self, name: str, seconds: float) -> bool:
        """Whether it is time again; true the first time."""
        now = time.monotonic()
        if now - self._last.get(name, float("-inf")) < seconds:
            return False
        self._last[name] = now
        return True


class _Source:
    """One place that is followed, and what becomes of its lines."""

    def __init__(self, name: str, place: Place, context: Context) -> None:
        with reading(context.engine) as session:
            known = local.positions(session, name)
        self.name = name
        self._place = place
        self._tail = Tail(place, [Position(*row) for row in known])
        self._has_refused = False

    def read(self, context: Context) -> None:
        """Store everything that is new."""
        for batch in self._tail.poll():
            self._store_soon(batch, context)
            if context.stopping.is_set():
                return
        if self._place.refused and not self._has_refused:
            self._has_refused = True
            log.warning("files in the place of a log are links, are no regular files, or may not be read; left out")

    def close(self) -> None:
        """Let go of the files."""
        self._tail.close()

    def keep(self, session: Session, path: str, lines: Sequence[Line], now: datetime) -> int:
        """Store lines; returns how many were garbage."""
        raise NotImplementedError

    def _store_soon(self, batch: Batch, context: Context) -> None:
        """Store a batch, however long the database is away: the descriptors behind it cannot be had again."""
        while True:
            try:
                self._store(batch, context)
                return
            except SQLAlchemyError as fault:
                if isinstance(fault, DBAPIError) and is_about_values(fault) and len(batch.lines) > 0:
                    self._store_singly(batch, context)
                    return
                log.warning("what a log says cannot be stored for now: %s", type(fault).__name__)
                if context.stopping.wait(FAULT_SECONDS):
                    raise SluiceError(ErrorCode.STOPPING, "asked to stop while the database was away") from None

    def _store(self, batch: Batch, context: Context) -> None:
        with transaction(context.engine) as session:
            garbage = self.keep(session, batch.path, batch.lines, context.now())
            self._move(session, batch, context, garbage)

    def _store_singly(self, batch: Batch, context: Context) -> None:
        """A line that the database does not take holds up no other."""
        garbage = 0
        with transaction(context.engine) as session:
            for line in batch.lines:
                try:
                    with session.begin_nested():
                        garbage += self.keep(session, batch.path, [line], context.now())
                except DBAPIError as fault:
                    if not is_about_values(fault):
                        raise
                    garbage += 1
            self._move(session, batch, context, garbage)

    def _move(self, session: Session, batch: Batch, context: Context, garbage: int) -> None:
        before = None if batch.before is None else PositionRow(*batch.before)
        after = None if batch.after is None else PositionRow(*batch.after)
        local.move(session, self.name, before, after, context.now(), garbage)


class _Logs(_Source):
    """The runs' logs."""

    def keep(self, session: Session, path: str, lines: Sequence[Line], now: datetime) -> int:
        kind, run = envelopes.kind_of(path), envelopes.run_of(path)
        kept = [line for line in lines if line.content.strip() and _is_of_use(line)]
        rows = [_envelope(line, envelopes.read(line, kind), run, now) for line in kept]
        local.add_envelopes(session, rows, now)
        return 0


class _ProxyLog(_Source):
    """The proxy's access log."""

    def __init__(self, place: Place, log_format: LogFormat, context: Context) -> None:
        super().__init__(PROXY, place, context)
        self._format = log_format
        self._has_garbage = False

    def keep(self, session: Session, path: str, lines: Sequence[Line], now: datetime) -> int:
        read = [(line, None if line.is_cut else proxy_log.read(line.content, self._format)) for line in lines]
        rows = [
            NewLine(
                line_sha256=proxy_log.line_key(line),
                at=_moment(served.at_ms),
                resolution_ms=served.resolution_ms,
                method=served.method,
                path=served.path,
                arguments=dict(served.arguments),
                status=served.status,
                body_bytes=served.body_bytes,
                request_bytes=served.request_bytes,
                seconds=served.seconds,
            )
            for line, served in read
            if served is not None
        ]
        local.add_lines(session, rows, now)
        garbage = len(read) - len(rows)
        if garbage and not self._has_garbage:
            self._has_garbage = True
            log.warning("lines of the proxy's log do not fit SLUICE_PROXY_LOG_FORMAT; they are left out")
        return garbage


def _sources(context: Context) -> list[_Source]:
    settings, found = context.settings, list[_Source]()
    if settings.validator_logs is not None:
        found.append(_Logs(LOGS, Place(settings.validator_logs, LOG_PATTERNS), context))
    if settings.proxy_log is not None:
        place = Place(settings.proxy_log.parent, ((settings.proxy_log.name,),), rotates=True)
        found.append(_ProxyLog(place, proxy_log.compile_format(settings.proxy_log_format), context))
        if settings.validator_logs is None:
            log.warning("SLUICE_PROXY_LOG alone grades nothing: which runs are ours is told by SLUICE_VALIDATOR_LOGS")
    return found


def _is_of_use(line: Line) -> bool:
    """Agents can fill these files: what comes behind all that a run can hold is passed over, at the forger's cost."""
    return line.ordinal < MOST_LINES_OF_A_FILE and line.offset_bytes < LARGEST_FILE_BYTES


def _envelope(line: Line, read: Envelope, run: str, now: datetime) -> NewEnvelope:
    started, ended = read.started_ms, read.ended_ms
    took = timedelta(seconds=min(max(read.execution_seconds or 0.0, 0.0), LONGEST_RUN_SECONDS))
    return NewEnvelope(
        eval_run_id=(read.eval_run_id if read.kind is EnvelopeKind.EPISODE else None) or run,
        problem_id=read.problem_id,
        kind=read.kind.value,
        ordinal=line.ordinal,
        line_sha256=line.sha256,
        content=line.content,
        size_bytes=line.size_bytes,
        status=read.status,
        defects=read.defects,
        started_at=now - took if started is None else _moment(started),
        ended_at=now if ended is None else _moment(ended),
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
