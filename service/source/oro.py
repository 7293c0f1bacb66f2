"""ORO's public API as a source of races, runs, items and trajectories. Stores nothing and judges nothing.

Listings raise `SourceRefused` when they cannot be had; a row that makes no sense is counted and skipped. `fetch`
raises nothing but STOPPING: what it cannot get is a `Refused` with its cause.
"""

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from service.domain.trajectory import ExecutionKind
from service.source import rows
from service.source.budget import Budget
from service.source.calls import Calls, No, SourceRefused
from service.source.decoding import Malformed, Row, decode
from service.source.known_fields import KNOWN_FIELDS
from service.source.listing import (
    AgentListing,
    Fetched,
    FetchTarget,
    ItemListing,
    ProblemListing,
    RaceListing,
    Refused,
    RunItems,
    RunListing,
    SuiteListing,
)
from service.source.objects import Caps, ObjectHosts
from service.source.oddities import Oddities, Oddity
from service.source.refusals import Refusal

Listed = TypeVar("Listed")
PAGE_SIZE = 100
_PUBLIC = "/v1/public"


class OroSource:
    """One client of the public API. Safe to share between threads."""

    def __init__(
        self,
        base_url: str,
        budget: Budget,
        client: httpx.Client,
        object_hosts: Iterable[str] = (),
        backoff_seconds: float = 0.5,
        stopping: threading.Event | None = None,
    ) -> None:
        base = urlsplit(base_url)
        self._calls = Calls(base_url, budget, client, Caps(), backoff_seconds, stopping or threading.Event())
        self._hosts = ObjectHosts(base.scheme, base.hostname or "", frozenset(object_hosts))
        self._suites: dict[int, SuiteListing] = {}
        self._missing_suites: set[int] = set()
        self._entries: dict[tuple[str, str, str | None], list[Row]] = {}
        """Problems by (agent version, phase, race): all validators' runs of one share them."""
        self._kept = threading.Lock()
        self.oddities = Oddities()

    def races(self, skip: Container[str] = frozenset()) -> Iterator[RaceListing]:
        """The race under way, then those that are over, newest first; each once, with its agents.

        Args:
            skip: ids of races not to list: each costs a request.
        """
        seen: set[str] = set()
        yield from self._race(self._listing("/races/current", dict), seen)
        for row in self._pages("/races/history", "races"):
            race_id = row.text("race_id")
            if race_id is None:
                self.oddities.note(Oddity.MALFORMED_ROW, "RacePublic: no race_id")
            elif race_id not in seen and race_id not in skip:
                yield from self._race(self._linked(f"/races/{_segment(race_id)}"), seen)

    def agents(self) -> Iterator[AgentListing]:
        """Every agent version on the leaderboard of any suite, those that never raced included; each once.

        The suites are those that `suites` or `problems` listed last, where they were ever asked for.
        """
        seen: set[str] = set()
        for suite in list(self._suites.values()) or self.suites():
            entries = self._pages("/leaderboard", "entries", {"suite_id": suite.suite_id})
            for listed in self._read("LeaderboardEntry", entries, rows.agent):
                if listed.agent_version_id not in seen:
                    seen.add(listed.agent_version_id)
                    yield listed

    def suites(self) -> list[SuiteListing]:
        """All suites whose execution kind is known."""
        listed = list(self._read("SuitePublic", self._listing("/suites", list), rows.suite))
        with self._kept:
            self._suites = {suite.suite_id: suite for suite in listed}
            self._missing_suites -= self._suites.keys()
        return listed

    def problems(self) -> Iterator[ProblemListing]:
        """The public problems of all suites. Race problems come from a hidden bank and are in none."""
        for suite in self.suites():
            answer = self._linked(f"/suites/{suite.suite_id}/problems")
            yield from self._read("ProblemPublic", answer.rows("problems"), partial(rows.problem, listed=suite))
            tasks = answer.rows("qualifying_tasks")
            yield from self._read("QualifyingTaskRead", tasks, partial(rows.task, listed=suite))

    def runs(self, agent_version_id: str) -> list[RunListing]:
        """Every run of an agent version: qualifying and race, included or not, still running or invalidated.

        Forgets the problem lists that `items` kept: what is kept is never older than the runs it is asked for.
        """
        with self._kept:
            self._entries.clear()
        answer = self._listing(f"/agent-versions/{_segment(agent_version_id)}/runs", list)
        listed = list(self._read("EvaluationRunPublic", answer, self._run))
        for run in listed:
            self._note_status("run", run.status, rows.RUN_STATUSES)
        return listed

    def items(self, run: RunListing) -> RunItems:
        """The items of a run, with what SN15 said of each. Withheld envpack items are not listed at all."""
        detail = self._listing(f"/evaluation-runs/{_segment(run.eval_run_id)}", dict)
        details = detail.row("items")
        released = details.flag("detail_released", default=True)
        if run.kind is ExecutionKind.ENVPACK:
            given = details.rows("items")
            world = detail.row("environment").text("catalog_epoch") or self._world(run)
            read = partial(rows.episode_item, listed=run, world=world, released=released)
            items = list(self._read("EvaluationItemRead", given, read))
            return RunItems(items, released and rows.all_given(details, len(given)))
        return self._legacy_items(run, details, released)

    def fetch(self, target: FetchTarget) -> Fetched | Refused:
        """One trajectory: the unpacked bytes, or why there are none.

        Raises:
            SluiceError: STOPPING, and nothing else.
        """
        if target.kind is ExecutionKind.ENVPACK:
            return self._feedback(target)
        wanted = {
            "artifact_type": "EVAL_PROBLEM_LOGS",
            "agent_version_id": target.agent_version_id,
            "eval_run_id": target.eval_run_id,
            "problem_id": target.problem_id,
        }
        return self._artifact(wanted)

    def agent_code(self, agent_version_id: str) -> Fetched | Refused:
        """The released source of an agent version: evidence to read, never to run or pass on."""
        return self._artifact({"artifact_type": "AGENT_CODE", "agent_version_id": agent_version_id})

    def _race(self, answer: Row, seen: set[str]) -> Iterator[RaceListing]:
        if answer.get("race") is None:
            return
        agents = tuple(self._read("RaceQualifierPublic", answer.rows("qualifiers"), rows.agent))
        for listed in self._read("RacePublic", [answer.get("race")], partial(rows.race, agents=agents)):
            self._note_status("race", listed.status, rows.RACE_STATUSES)
            seen.add(listed.race_id)
            yield listed

    def _run(self, row: Row) -> RunListing:
        suite_id = row.count("suite_id")
        if suite_id is None:
            raise Malformed("no suite_id")
        suite = self._suite(suite_id)
        if suite is None:
            raise rows.UnknownKind(f"suite {suite_id}")
        return rows.run(row, suite.kind)

    def _suite(self, suite_id: int | None) -> SuiteListing | None:
        """The suite of a run. One that no listing has is looked for once, not once for each of its runs."""
        if suite_id is None:
            return None
        if suite_id not in self._suites and suite_id not in self._missing_suites:
            self.suites()
            self._missing_suites |= {suite_id} - self._suites.keys()
        return self._suites.get(suite_id)

    def _world(self, run: RunListing) -> str:
        suite = self._suite(run.suite_id)
        return rows.world_of(suite) if suite else f"suite-{run.suite_id}"

    def _legacy_entries(self, run: RunListing) -> list[Row]:
        key = (run.agent_version_id, run.phase, run.race_id)
        with self._kept:
            kept = self._entries.get(key)
        if kept is None:
            params = {"phase": run.phase} | ({"race_id": run.race_id} if run.race_id else {})
            answer = self._listing(f"/agent-versions/{_segment(run.agent_version_id)}/problems", dict, params)
            kept = list(self._read("ProblemProgressEntry", answer.rows("problems"), Row))
            with self._kept:
                self._entries[key] = kept
        return kept

    def _legacy_items(self, run: RunListing, details: Row, released: bool) -> RunItems:
        items: list[ItemListing] = []
        given = 0
        for entry in self._legacy_entries(run):
            own = [row for row in entry.rows("validator_results") if _names(row, run)][:1]
            given += len(own)
            read = partial(rows.legacy_item, entry=entry, listed=run, released=released)
            items += self._read("ValidatorProblemResult", own, read)
        for item in items:
            self._note_status("problem", item.judgement["status"], rows.PROBLEM_STATUSES)
        return RunItems(items, released and rows.all_given(details, given))

    def _feedback(self, target: FetchTarget) -> Fetched | Refused:
        if target.episode_result_id is None:
            return No(Refusal.FEEDBACK_ABSENT).refused()
        path = f"{_PUBLIC}/episode-results/{_segment(target.episode_result_id)}/feedback"
        answer = self._calls.once("GET", path)
        if isinstance(answer, Fetched):
            return answer
        return answer.refused(Refusal.FEEDBACK_ABSENT if answer.reason is Refusal.NO_OBJECT else None)

    def _artifact(self, wanted: Mapping[str, str]) -> Fetched | Refused:
        """Ask for a URL and follow it; once more with a fresh one when it is refused."""
        for _ in range(2):
            answer = self._calls.once("POST", f"{_PUBLIC}/artifacts/download-url", json=wanted)
            if isinstance(answer, No):
                return answer.refused()
            try:
                url = _object(decode(answer.payload)).needed("download_url")
            except Malformed:
                return No(Refusal.UNREADABLE_ANSWER).refused()
            if not self._hosts.allows(url):
                return No(Refusal.FORBIDDEN_HOST).refused()
            given = self._calls.follow(url)
            if isinstance(given, Fetched):
                return given
            if given.status != httpx.codes.FORBIDDEN:
                return given.refused(Refusal.NO_OBJECT if given.status == httpx.codes.NOT_FOUND else None)
        return No(Refusal.EXPIRED_URL).refused()

    def _pages(self, path: str, name: str, params: Mapping[str, str | int] | None = None) -> Iterator[Row]:
        """Rows of a paged listing. An empty page ends it, whatever total it claims."""
        offset = 0
        while True:
            answer = self._listing(path, dict, {**(params or {}), "limit": PAGE_SIZE, "offset": offset})
            page = answer.rows(name)
            yield from (Row(row) for row in page if isinstance(row, dict))
            offset += len(page)
            total = answer.count("total")
            if not page or (total is not None and offset >= total):
                return

    def _listing(self, path: str, outline: type, params: Mapping[str, str | int] | None = None) -> Any:
        answer = self._calls.listing(f"{_PUBLIC}{path}", params)
        if not isinstance(answer, outline):
            raise SourceRefused(Refusal.UNREADABLE_ANSWER, path)
        return Row(answer) if isinstance(answer, dict) else answer

    def _linked(self, path: str) -> Row:
        """What another listing pointed at: empty where it is gone for good, so that one dead link ends no walk."""
        try:
            return Row(self._listing(path, dict))
        except SourceRefused as refused:
            if not refused.reason.terminal:
                raise
            self.oddities.note(Oddity.DEAD_LINK, path)
            return Row()

    def _read(self, shape: str, listed: Iterable[Any], read: Callable[[Row], Listed]) -> Iterator[Listed]:
        """Read rows of one shape; what is malformed is counted and left out."""
        for row in listed:
            try:
                yield read(self._known(shape, _object(row)))
            except rows.UnknownKind as unknown:
                self.oddities.note(Oddity.UNKNOWN_EXECUTION_KIND, f"{shape}: {unknown}")
            except Malformed as malformed:
                self.oddities.note(Oddity.MALFORMED_ROW, f"{shape}: {malformed}")

    def _known(self, shape: str, row: Row) -> Row:
        for name in row.keys() - KNOWN_FIELDS[shape]:
            self.oddities.note(Oddity.UNKNOWN_FIELD, f"{shape}.{name}")
        return row

    def _note_status(self, what: str, status: str | None, known: frozenset[str]) -> None:
        if status not in known:
            self.oddities.note(Oddity.UNKNOWN_STATUS, f"{what} {status}")


def _object(value: Any) -> Row:
    if not isinstance(value, dict):
        raise Malformed("not an object")
    return Row(value)


def _names(result: Any, run: RunListing) -> bool:
    return isinstance(result, dict) and result.get("eval_run_id") == run.eval_run_id


def _segment(name: str) -> str:
    """A name from an answer as one segment of a path, whatever it holds."""
    return quote(name, safe="", errors="replace")
