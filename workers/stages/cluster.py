"""Cluster: tie together the problems that give each other's answer away. Draws no edge itself."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy.orm import Session

from service.domain.leaks import leakage
from service.domain.leaks.benchmarks import Benchmark, Contact, contacts, contacts_digest, node_id
from service.domain.leaks.benchmarks import nodes as benchmark_nodes
from service.domain.leaks.leakage import Edge, LeakPlan, ProblemFacts
from service.domain.leaks.problems import FamilyReport, PublishedProblem, describe
from service.domain.rows.records import gold_kind
from service.store import policies
from service.store.corpus import families, revisions
from service.store.engine import reading, transaction
from service.store.release import benchmarks, clusters
from service.store.release.benchmarks import Member
from service.store.release.clusters import EdgeRow, MemberRow
from service.store.work import backlog, leases
from service.store.work.leases import LeaseName
from workers.context import Context
from workers.leadership import held


def run(_ids: Sequence[int], context: Context, _claimant: str) -> list[int]:
    """Cluster all problems at a newly sealed revision, if anything has changed since the last clustering."""
    plan, rules = context.policies.leaks, context.policies.rules
    with held(context.engine, LeaseName.CLUSTER) as token:
        if token is None:
            return []
        revision = _sealed_revision(context)
        if revision is None:
            return []
        with reading(context.engine) as session:
            known = clusters.facts_known(session)
            facts = _facts(session, plan, rules.digest, revision)
            registered = benchmarks.standing(session)
            public = benchmarks.load(session, registered)
        graph = _draw(facts, public, plan)
        public_digest = benchmarks.digest_of(registered)
        with transaction(context.engine) as session:
            leases.require(session, LeaseName.CLUSTER, token)
            policies.record(session, "leaks", plan.name, plan.digest, msgspec.to_builtins(plan))
            policies.record(session, "rules", rules.name, rules.digest, msgspec.to_builtins(rules))
            number = clusters.save(
                session,
                revision=revision,
                plan_digest=plan.digest,
                rules_digest=rules.digest,
                facts_known=known,
                benchmarks_digest=public_digest,
                contacts_digest=contacts_digest(public_digest, graph.contacts, graph.items),
                members=[_member(problem, graph.cluster_of) for problem in facts],
                edges=[EdgeRow(edge.a, edge.b, edge.kind, edge.shared) for edge in graph.edges],
            )
            benchmarks.save(session, number, registered, _item_members(public, graph.items), graph.contacts)
    return []


class _Graph(NamedTuple):
    """The leak graph as it is stored."""

    cluster_of: dict[str, str]
    """Of problems."""
    edges: list[Edge]
    """Between problems."""
    items: dict[str, str]
    """The cluster of each benchmark item that is tied to a problem."""
    contacts: list[Contact]


def _draw(facts: Sequence[ProblemFacts], public: Sequence[Benchmark], plan: LeakPlan) -> _Graph:
    nodes = benchmark_nodes(public)
    edges = leakage.edges(facts, plan, nodes)
    problem_ids, item_ids = [each.problem_id for each in facts], frozenset(each.problem_id for each in nodes)
    cluster_of = leakage.clusters(edges, problem_ids, item_ids)
    inhabited = {cluster_of[problem_id] for problem_id in problem_ids}
    return _Graph(
        cluster_of={problem_id: cluster_of[problem_id] for problem_id in problem_ids},
        edges=[edge for edge in edges if item_ids.isdisjoint((edge.a, edge.b))],
        items={item: cluster_of[item] for item in sorted(item_ids) if cluster_of[item] in inhabited},
        contacts=contacts(facts, public, edges, cluster_of, plan.queries) if public else [],
    )


def _item_members(public: Sequence[Benchmark], items: Mapping[str, str]) -> Iterator[Member]:
    for benchmark in public:
        for item in benchmark.items:
            cluster_id = items.get(node_id(benchmark.name, item.line))
            if cluster_id is not None:
                yield Member(benchmark.name, item.line, cluster_id)


def _sealed_revision(context: Context) -> int | None:
    """A sealed revision newer than the last clustering; None when nothing is due."""
    plan, rules = context.policies.leaks, context.policies.rules
    with transaction(context.engine) as session:
        if not backlog.clustering_due(session, plan.digest, rules.digest):
            return None
        newest = clusters.latest(session)
        sealed = revisions.last_sealed(session)
        if revisions.has_unsealed_rows(session) or newest is None or sealed <= newest.revision:
            return revisions.seal(session)
        return sealed


def _facts(session: Session, plan: LeakPlan, rules_digest: str, revision: int) -> list[ProblemFacts]:
    reports: dict[str, list[FamilyReport]] = defaultdict(list)
    merged = families.merged(session, plan.families.digest, revision)
    for report in clusters.reports(session, rules_digest, revision, merged):
        reports[report.problem_id].append(FamilyReport(*report[1:]))
    return [
        describe(PublishedProblem(*problem), reports[problem.problem_id], plan)
        for problem in clusters.problems(session)
    ]


def _member(problem: ProblemFacts, cluster_of: dict[str, str]) -> MemberRow:
    return MemberRow(
        problem_id=problem.problem_id,
        cluster_id=cluster_of[problem.problem_id],
        query=problem.query,
        query_confirmed=problem.query_confirmed,
        gold_kind=gold_kind(problem),
        winner_ids=sorted(problem.winner_ids),
        gold_ids=sorted(problem.gold_ids),
    )
