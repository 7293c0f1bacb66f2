"""Who made an imported trajectory and of which problem it is. Names of imports never equal a harvested row's.

A problem is another matter: it is the same problem whoever tried it, so an id in SN15's own form is taken as it is, and
the trajectory then shares the problem's pool. Any other id (a line number, a task name) means nothing elsewhere, and
the problem is known by its query instead.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from service.domain.canonical import digest
from service.domain.trajectory import Trajectory
from service.domain.wire.lenient import storable

PREFIX = "import:"
UNNAMED = "unnamed"
"""Agent and family of every row that nobody gives a name: one family, as nothing shows that they are several."""
MAX_NAME_CHARACTERS = 200
MAX_PROBLEM_ID_BYTES = 500
_SN15_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_.:-]+/[A-Za-z0-9_.:/-]+", re.ASCII)


class Naming(NamedTuple):
    """What the importer says of the agents in a file. It goes before what the file says; None: nothing."""

    agent: str | None = None
    family: str | None = None


class Agent(NamedTuple):
    """An agent version that imported rows are of."""

    agent_version_id: str
    name: str
    family: str
    is_vouched: bool
    """The importer names it, not only the file: a file could name any number of agents to back itself up."""


def agent_of(row: Mapping[str, Any], document: Mapping[str, Any], naming: Naming) -> Agent:
    """The agent version behind a row.

    A family that the importer names is taken as it is: it may be a miner's, whose agent the importer knows this to be.
    """
    said = naming.agent or next(_agent_names(row, document), None) or UNNAMED
    name = said[:MAX_NAME_CHARACTERS]
    family = naming.family or f"{PREFIX}{name.partition('@')[0]}"
    is_vouched = naming != Naming()
    return Agent(f"{PREFIX}{digest([name, family, is_vouched])[:40]}", name, family, is_vouched)


def _agent_names(row: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    """Names that a row gives: `agent` as an object (ATIF) or text, `agent_version_id`, `model`."""
    for place in (document, row):
        agent = place.get("agent")
        if isinstance(agent, Mapping) and (name := _text(agent.get("name"))):
            version = _text(agent.get("version"))
            yield f"{name}@{version}" if version else name
        elif name := _text(agent):
            yield name
        for field in ("agent_version_id", "model"):
            if name := _text(place.get(field)):
                yield name


def problem_of(row: Mapping[str, Any], document: Mapping[str, Any], trajectory: Trajectory) -> str | None:
    """Id of the problem a row is about; None where neither an id nor a query says."""
    places = (row, document.get("extra"), row.get("metadata"))
    for place in places:
        stated = _text(place.get("problem_id")) if isinstance(place, Mapping) else None
        if stated and len(stated) <= MAX_PROBLEM_ID_BYTES and _SN15_ID.fullmatch(stated):
            return stated
    query = trajectory.query or _text(row.get("query"))
    words = " ".join(unicodedata.normalize("NFKC", query).casefold().split()) if query else ""
    if not words:
        return None
    return f"{PREFIX}{hashlib.sha256(words.encode(errors='replace')).hexdigest()[:40]}"


def _text(value: Any) -> str | None:
    return storable(value.strip()) or None if isinstance(value, str) else None
