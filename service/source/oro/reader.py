"""Read the source's listings row by row: pages, repeats, rows that make no sense. Knows no endpoint."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from service.source.http.calls import Calls, SourceRefused
from service.source.http.decoding import Malformed, Row
from service.source.oro import rows
from service.source.oro.known_fields import ID_FIELDS, KNOWN_FIELDS
from service.source.oro.oddities import Oddities, Oddity
from service.source.refusals import Refusal

Listed = TypeVar("Listed")
PAGE_SIZE = 100
MAX_PAGES = 1000
"""A hundred thousand rows: no listing comes near, unless it never ends."""
PUBLIC = "/v1/public"
FAULTS_OF_A_PAGE = frozenset(
    {Refusal.UPSTREAM_ERROR, Refusal.UNEXPECTED, Refusal.UNREADABLE_ANSWER, Refusal.TRUNCATED},
)
"""Answers that may be those of one page for ever, or of the whole source for a while."""
LINK_PATIENCE = 2
"""So many walks in a row a faulty page may break off; then it is taken for dead, and the walk goes on without it."""


class Reader:
    """Reads listings of one API, and notes what is odd about them. Safe to share between threads."""

    def __init__(self, calls: Calls, oddities: Oddities) -> None:
        self._calls = calls
        self._oddities = oddities
        self._broken = 0
        self._is_faulty = False

    def pages(self, path: str, name: str, shape: str, params: Mapping[str, str | int] | None = None) -> Iterator[Any]:
        """Rows of a paged listing. A page without a new row ends it, whatever total it claims.

        A row that comes again on a later page is no oddity: rows move on when one is added between two requests.
        """
        offset = 0
        seen: set[object] = set()
        for _ in range(MAX_PAGES):
            answer = self.listing(path, dict, {**(params or {}), "limit": PAGE_SIZE, "offset": offset})
            page = answer.rows(name)
            new = [row for row in page if _id_of(shape, row) not in seen]
            yield from new
            seen.update(_id_of(shape, row) for row in new)
            offset += len(page)
            total = answer.count("total")
            if not new or (total is not None and offset >= total):
                return
        self._oddities.note(Oddity.ENDLESS_LISTING, path)

    def listing(self, path: str, outline: type, params: Mapping[str, str | int] | None = None) -> Any:
        """One answer of the outline, an object as a `Row`.

        Raises:
            SourceRefused: it could not be had, or has another outline.
        """
        answer = self._calls.listing(f"{PUBLIC}{path}", params)
        if not isinstance(answer, outline):
            raise SourceRefused(Refusal.UNREADABLE_ANSWER, path)
        return Row(answer) if isinstance(answer, dict) else answer

    def linked(self, path: str) -> Row:
        """What another listing pointed at: empty where it is dead, so that one dead link does not end every walk.

        Raises:
            SourceRefused: it may be there yet: the source is away, or it has not been faulty for long enough.
        """
        try:
            return Row(self.listing(path, dict))
        except SourceRefused as refused:
            if not refused.reason.terminal:
                if refused.reason not in FAULTS_OF_A_PAGE:
                    raise
                if self._broken < LINK_PATIENCE:
                    self._broken += 1
                    raise
                self._is_faulty = True
            self._oddities.note(Oddity.DEAD_LINK, path)
            return Row()

    def links_followed(self) -> None:
        """A walk has followed all links: if none was faulty, the next fault has all the patience again."""
        self._broken = self._broken if self._is_faulty else 0
        self._is_faulty = False

    def read(self, shape: str, listed: Iterable[Any], read: Callable[[Row], Listed]) -> Iterator[Listed]:
        """Read rows of one shape; what is malformed or comes again is counted and left out."""
        for row in self.unique(shape, listed):
            try:
                yield read(self._known(shape, object_of(row)))
            except rows.UnknownKind as unknown:
                self._oddities.note(Oddity.UNKNOWN_EXECUTION_KIND, f"{shape}: {unknown}")
            except Malformed as malformed:
                self._oddities.note(Oddity.MALFORMED_ROW, f"{shape}: {malformed}")

    def unique(self, shape: str, listed: Iterable[Any]) -> Iterator[Any]:
        """The first row of each id, and every row without one."""
        seen: set[object] = set()
        for row in listed:
            row_id = _id_of(shape, row)
            if row_id is not None and row_id in seen:
                self._oddities.note(Oddity.DUPLICATE_ROW, shape)
                continue
            seen.add(row_id)
            yield row

    def note_status(self, what: str, status: str | None, known: frozenset[str]) -> None:
        """Count a status nobody here knows."""
        if status not in known:
            self._oddities.note(Oddity.UNKNOWN_STATUS, f"{what} {status}")

    def _known(self, shape: str, row: Row) -> Row:
        if row.keys() <= KNOWN_FIELDS[shape]:
            return row
        for name in row.keys() - KNOWN_FIELDS[shape]:
            self._oddities.note(Oddity.UNKNOWN_FIELD, f"{shape}.{name}")
        return row


def object_of(value: Any) -> Row:
    """The value as a row.

    Raises:
        Malformed: it is no object.
    """
    if not isinstance(value, dict):
        raise Malformed("not an object")
    return Row(value)


def _id_of(shape: str, row: Any) -> str | int | None:
    row_id = row.get(ID_FIELDS.get(shape)) if isinstance(row, dict) else None
    return row_id if isinstance(row_id, str | int) else None
