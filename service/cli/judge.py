"""`sluice judge`: judge the whole corpus by a rule set, beside the verdicts that are there. Overwrites nothing."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from sqlalchemy import Engine

from service.cli import funnels as shown
from service.cli.joined import Joined, joined
from service.cli.options import AsJson, DataDir, settings
from service.cli.output import note, print_json
from service.cli.stopping import stop_on_signals
from service.domain.filter.rules import RULE_SETS, RuleSet
from service.domain.policy import DEFAULT_POLICIES
from service.judging import judge_batch
from service.store.corpus import verdicts
from service.store.engine import open_engine, reading
from service.store.figures import funnels
from service.tokenizer import qwen_token_counter

BATCH = 200
"""Trajectories in one transaction."""
ROUND = 20_000
"""Trajectories that are looked up at a time."""
NOTE_SECONDS = 5.0
INTERRUPTED = 130
CORES = os.cpu_count() or 1

Wanted = Annotated[str, typer.Option("--rules", help=f"A rule set: {', '.join(RULE_SETS)}.")]
Processes = Annotated[int, typer.Option("--processes", min=1, max=64, help="How many judge at once.")]


def command(
    rules: Wanted = DEFAULT_POLICIES.rules.name,
    processes: Processes = CORES,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Judge every trajectory by a rule set that has no verdict of it yet, and show both funnels."""
    chosen, in_force = shown.rule_set(rules), DEFAULT_POLICIES.rules
    with stop_on_signals() as stopping, joined(settings(data_dir=data_dir)) as at:
        judged = _judge_all(at, chosen, processes, stopping)
        with reading(at.engine) as session:
            sets = [in_force] if chosen is in_force else [in_force, chosen]
            found = [(each, funnels.funnel(session, each)) for each in sets]
            changes = funnels.compare(session, in_force, chosen) if chosen is not in_force else []
        is_interrupted = stopping.is_set()
    if as_json:
        told = {"judged": judged, "funnels": [shown.funnel_json(*each) for each in found]}
        print_json(told | {"changes": [change._asdict() for change in changes]})
    else:
        for each in found:
            shown.print_funnel(*each)
        if changes:
            shown.print_changes(in_force, chosen, changes)
    if is_interrupted:
        note("interrupted; the same command goes on where this one stopped")
        raise typer.Exit(INTERRUPTED)


def _judge_all(joined_at: Joined, rules: RuleSet, processes: int, stopping: threading.Event) -> int:
    judged, noted_at = 0, time.monotonic()
    assert joined_at.settings.database_url is not None
    work = (joined_at.settings.database_url, rules.name)
    with multiprocessing.get_context("spawn").Pool(processes, _open, work) as pool:
        for ids in _rounds(joined_at.engine, rules, stopping):
            for stored in pool.imap_unordered(_judge, [ids[at : at + BATCH] for at in range(0, len(ids), BATCH)]):
                judged += stored
                if time.monotonic() - noted_at > NOTE_SECONDS:
                    noted_at = time.monotonic()
                    note(f"{judged} judged by {rules.label}")
                if stopping.is_set():
                    return judged
    return judged


def _rounds(engine: Engine, rules: RuleSet, stopping: threading.Event) -> Iterator[Sequence[int]]:
    """What is to be judged, so many at a time, until nothing is."""
    while not stopping.is_set():
        with reading(engine) as session:
            ids = verdicts.unjudged(session, rules.digest, ROUND)
        if not ids:
            return
        yield ids


_engine: Engine
_rules: RuleSet


def _open(database_url: str, name: str) -> None:
    """Make a process ready to judge; a signal to the terminal is its parent's to hear."""
    global _engine, _rules
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _engine, _rules = open_engine(database_url), RULE_SETS[name]


def _judge(ids: Sequence[int]) -> int:
    return judge_batch(_engine, ids, _rules, qwen_token_counter(_rules.token_method))
