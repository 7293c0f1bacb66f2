"""Scan: read released code, make what was found evidence, and link agents whose code is nearly the same.

Decides nothing itself. Each source, each batch of trajectories and each comparison is a transaction of its own: whoever
is killed has at most read a source in vain. Late code makes new states of the evidence, and so new verdicts.
"""

from service.domain.agent_code.code_scan import SCANNER_VERSION
from service.domain.agent_code.scanner import scan
from service.domain.agent_code.sketch import sketch
from service.domain.leaks.families import code_links
from service.store.corpus import code_scans, families
from service.store.engine import reading, transaction
from workers.context import Context

BATCH = 200
"""Trajectories in one transaction."""


def follow(context: Context) -> bool:
    """Do what is due, until nothing is or the process is asked to stop; returns whether anything was."""
    found = False
    while not context.stopping.is_set() and (scan_next(context) or take_in(context) or link(context)):
        found = True
    return found


def scan_next(context: Context) -> bool:
    """Scan one source that has not been scanned; False: there is none."""
    with reading(context.engine) as session:
        unscanned = code_scans.unscanned(session, SCANNER_VERSION)
    if unscanned is None:
        return False
    found, shape = scan(unscanned.source), sketch(unscanned.source)
    with transaction(context.engine) as session:
        code_scans.add(session, unscanned.code_sha256, found, shape.astype(families.STORED).tobytes())
    return True


def take_in(context: Context) -> bool:
    """Make scans evidence of some trajectories that do not have it; False: there are none."""
    with transaction(context.engine) as session:
        due = code_scans.due(session, SCANNER_VERSION, BATCH)
        code_scans.take_in(session, SCANNER_VERSION, due)
    return bool(due)


def link(context: Context) -> bool:
    """Compare the code of agents that were never compared with all others'; False: there are none."""
    rule = context.policies.leaks.families
    with reading(context.engine) as session:
        new = families.uncompared(session, SCANNER_VERSION, rule.digest)
        if not new:
            return False
        agents, sketches = families.coded(session, SCANNER_VERSION), families.sketches(session, SCANNER_VERSION)
        known = families.links(session, rule.digest)
    drawn = code_links(agents, sketches, new, known, rule)
    with transaction(context.engine) as session:
        families.add(session, rule.digest, drawn, new)
    return True
