"""ORO's public API as a source of races, runs, items and trajectories. Stores nothing and judges nothing.

Listings raise `SourceRefused` when they cannot be had; a row that makes no sense is counted and skipped. `fetch`
raises nothing but STOPPING: what it cannot get is a `Refused` with its cause.
"""

import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

from service.domain.trajectory import ExecutionKind
from service.source.answers import Fetched, FetchTarget, Refused, Unchanged
from service.source.http.budget import Budget
from service.source.http.calls import Calls, No
from service.source.http.connections import Connections
from service.source.http.decoding import Malformed, Row, decode
from service.source.http.objects import Caps, ObjectHosts
from service.source.oro import publications, rows
from service.source.oro.listing import (
    AgentListing,
    ItemListing,
    ProblemListing,
    RaceListing,
    RunItems,
    RunListing,
    SuiteListing,
)
from service.source.oro.oddities import Oddities, Oddity
from service.source.oro.publications import CodeRelease, SeedRecord, Standing, TrajectoryCount
from service.source.oro.reader import PUBLIC, Reader, object_of
from service.source.refusals import Refusal


class OroSource:
    """One client of the public API. Safe to share between threads."""

    def __init__(
        self,
        base_url: str,
        budget: Budget,
        client: Connections,
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
        self._reader = Reader(self._calls, self.oddities)

    def races(self, skip: Container[str] = frozenset()) -> Iterator[RaceListing]:
        """The race under way, then those that are over, newest first; each once, with its agents.

        Args:
            skip: ids of races not to list: each costs a request.
        """
        seen: set[str] = set()
        yield from self._race(self._reader.linked("/races/current"), seen)
        past = self._reader.pages("/races/history", "races", "RacePublic")
        for race_id in self._reader.read("RacePublic", past, lambda row: row.needed("race_id")):
            if race_id not in seen and race_id not in skip:
                yield from self._race(self._reader.linked(f"/races/{_segment(race_id)}"), seen)
        self._reader.links_followed()

    def trajectory_history(self) -> TrajectoryCount:
        """How many trajectories there are by the source's own count."""
        return publications.trajectory_count(self._reader)

    def agents(self) -> list[AgentListing]:
        """Every agent version on the leaderboard of any suite, those that never raced included; each once."""
        return publications.agents_of(self.leaderboards())

    def leaderboards(self) -> Iterator[Standing]:
        """The standings of every known suite, and of all suites where none is known yet."""
        for suite in self.known_suites() or self.suites():
            yield from publications.leaderboard(self._reader, self.oddities, suite)

    def seed_commitment(self, race_id: str) -> SeedRecord | None:
        """What is published of a race's world seed; None for a race that has no commitment."""
        return publications.seed_record(self._reader, _segment(race_id), race_id)

    def code_release(self, agent_version_id: str) -> CodeRelease:
        """Whether and when the code of an agent version can be had."""
        return publications.code_release(self._reader, _segment(agent_version_id))

    def suites(self) -> list[SuiteListing]:
        """All suites whose execution kind is known."""
        listed = list(self._reader.read("SuitePublic", self._reader.listing("/suites", list), rows.suite))
        with self._kept:
            self._suites = {suite.suite_id: suite for suite in listed}
            self._missing_suites -= self._suites.keys()
        return listed

    def known_suites(self) -> list[SuiteListing]:
        """The suites that `suites` or `problems` listed last; asks for nothing."""
        with self._kept:
            return list(self._suites.values())

    def problems(self) -> Iterator[ProblemListing]:
        """The public problems of all suites. Race problems come from a hidden bank and are in none."""
        for suite in self.suites():
            answer = self._reader.linked(f"/suites/{suite.suite_id}/problems")
            yield from self._reader.read("ProblemPublic", answer.rows("problems"), partial(rows.problem, listed=suite))
            tasks = answer.rows("qualifying_tasks")
            yield from self._reader.read("QualifyingTaskRead", tasks, partial(rows.task, listed=suite))

    def runs(self, agent_version_id: str) -> list[RunListing]:
        """Every run of an agent version: qualifying and race, included or not, still running or invalidated.

        Forgets the problem lists that `items` kept: what is kept is never older than the runs it is asked for.
        """
        with self._kept:
            self._entries.clear()
        answer = self._reader.listing(f"/agent-versions/{_segment(agent_version_id)}/runs", list)
        read = partial(self._run, agent_version_id=agent_version_id)
        listed = list(self._reader.read("EvaluationRunPublic", answer, read))
        for run in listed:
            self._reader.note_status("run", run.status, rows.RUN_STATUSES)
        return listed

    def items(self, run: RunListing) -> RunItems:
        """The items of a run, with what SN15 said of each. Withheld envpack items are not listed at all."""
        detail = self._reader.listing(f"/evaluation-runs/{_segment(run.eval_run_id)}", dict)
        details = detail.row("items")
        released = details.flag("detail_released", default=True)
        if run.kind is ExecutionKind.ENVPACK:
            given = list(self._reader.unique("EvaluationItemRead", details.rows("items")))
            world = detail.row("environment").text("catalog_epoch") or self._world(run)
            read = partial(rows.episode_item, listed=run, world=world, released=released)
            items = list(self._reader.read("EvaluationItemRead", given, read))
            return RunItems(items, released and rows.all_given(details, len(given)))
        return self._legacy_items(run, details, released)

    def fetch(self, target: FetchTarget) -> Fetched | Unchanged | Refused:
        """One trajectory: the unpacked bytes, or why there are none; Unchanged only where the target names an etag.

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
        given = self._artifact(wanted, target.etag)
        return No(Refusal.UNREADABLE_ANSWER).refused() if isinstance(given, Fetched) and _is_page(given) else given

    def agent_code(self, agent_version_id: str) -> Fetched | Refused:
        """The released source of an agent version: evidence to read, never to run or pass on."""
        answer = self._artifact({"artifact_type": "AGENT_CODE", "agent_version_id": agent_version_id})
        return No(Refusal.UNEXPECTED).refused() if isinstance(answer, Unchanged) else answer

    def _race(self, answer: Row, seen: set[str]) -> Iterator[RaceListing]:
        if answer.get("race") is None:
            return
        agents = tuple(self._reader.read("RaceQualifierPublic", answer.rows("qualifiers"), rows.agent))
        for listed in self._reader.read("RacePublic", [answer.get("race")], partial(rows.race, agents=agents)):
            if listed.race_id in seen:
                self.oddities.note(Oddity.DUPLICATE_ROW, "RacePublic")
                continue
            self._reader.note_status("race", listed.status, rows.RACE_STATUSES)
            seen.add(listed.race_id)
            yield listed

    def _run(self, row: Row, agent_version_id: str) -> RunListing:
        if row.needed("agent_version_id") != agent_version_id:
            raise Malformed("of another agent version")
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
            answer = self._reader.listing(f"/agent-versions/{_segment(run.agent_version_id)}/problems", dict, params)
            kept = list(self._reader.read("ProblemProgressEntry", answer.rows("problems"), Row))
            with self._kept:
                self._entries[key] = kept
        return kept

    def _legacy_items(self, run: RunListing, details: Row, released: bool) -> RunItems:
        items: list[ItemListing] = []
        given = 0
        seen: set[str] = set()
        for entry in self._legacy_entries(run):
            own = [row for row in entry.rows("validator_results") if _names(row, run)][:1]
            problem_id = entry.text("problem_id") if own else None
            if problem_id in seen:
                self.oddities.note(Oddity.DUPLICATE_ROW, "ProblemProgressEntry")
                continue
            seen |= {problem_id} if problem_id else set()
            given += len(own)
            read = partial(rows.legacy_item, entry=entry, listed=run, released=released)
            items += self._reader.read("ValidatorProblemResult", own, read)
        for item in items:
            self._reader.note_status("problem", item.judgement["status"], rows.PROBLEM_STATUSES)
        return RunItems(items, released and rows.all_given(details, given))

    def _feedback(self, target: FetchTarget) -> Fetched | Unchanged | Refused:
        if target.episode_result_id is None:
            return No(Refusal.FEEDBACK_ABSENT).refused()
        path = f"{PUBLIC}/episode-results/{_segment(target.episode_result_id)}/feedback"
        answer = self._calls.once("GET", path, etag=target.etag)
        if isinstance(answer, No):
            return answer.refused(Refusal.FEEDBACK_ABSENT if answer.reason is Refusal.NO_OBJECT else None)
        if isinstance(answer, Fetched) and not _is_object(answer):
            return No(Refusal.UNREADABLE_ANSWER).refused()
        return answer

    def _artifact(self, wanted: Mapping[str, str], etag: str | None = None) -> Fetched | Unchanged | Refused:
        """Ask for a URL and follow it; once more with a fresh one when it is refused."""
        for _ in range(2):
            answer = self._calls.once("POST", f"{PUBLIC}/artifacts/download-url", json=wanted)
            if not isinstance(answer, Fetched):
                return (answer if isinstance(answer, No) else No(Refusal.UNEXPECTED)).refused()
            try:
                url = object_of(decode(answer.payload)).text("download_url")
            except Malformed:
                url = None
            if not url:
                return No(Refusal.UNREADABLE_ANSWER).refused()
            if not self._hosts.allows(url):
                return No(Refusal.FORBIDDEN_HOST).refused()
            given = self._calls.follow(url, etag, public_only=not self._hosts.expects(url))
            if not isinstance(given, No):
                return given
            if given.status != HTTPStatus.FORBIDDEN:
                return given.refused(Refusal.OBJECT_ABSENT if given.status == HTTPStatus.NOT_FOUND else None)
        return No(Refusal.EXPIRED_URL).refused()


def _is_object(answer: Fetched) -> bool:
    """Whether an answer of the API is a whole JSON object: not a part of one, and no page in its place."""
    try:
        return isinstance(decode(answer.payload), dict)
    except Malformed:
        return False


def _is_page(given: Fetched) -> bool:
    """Whether markup was given in place of an object. Broken JSON is what was uploaded, and is kept."""
    return given.payload.lstrip().startswith(b"<")


def _names(result: Any, run: RunListing) -> bool:
    return isinstance(result, dict) and result.get("eval_run_id") == run.eval_run_id


def _segment(name: str) -> str:
    """A name from an answer as one segment of a path, whatever it holds."""
    return quote(name, safe="", errors="replace")
