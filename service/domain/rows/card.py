"""The dataset card of a snapshot: front matter that `datasets.load_dataset` reads, then words for people.

Says nothing that the manifest and the audit do not say; it must do for somebody who has nothing but the snapshot's URL.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from service.domain.rows.manifest import AUDIT_NAME, MANIFEST_NAME, STATUS_NAME, Manifest, PartSummary, part_folder
from service.domain.rows.splits import Config

ABOUT = {
    Config.AGENTIC: "logged replies of a language model show that it issued every call",
    Config.UNATTRIBUTED: "the trajectory passed, but no evidence says who issued its calls",
    Config.NEGATIVE: "clean failures of a model's own: examples of what not to do; of train problems alone",
    Config.REJECTED: "what was left out, with its `reason`; of train problems alone, and none of it to be followed",
}


def dataset_card(manifest: Manifest, audit: Mapping[str, Any]) -> str:
    """The snapshot's `README.md`.

    Args:
        manifest: its manifest.
        audit: its audit report, with `figures`.
    """
    figures = audit["figures"]
    body = _CARD.format(
        id=manifest.snapshot_id,
        races=f"{len(manifest.source_races)} race{'' if len(manifest.source_races) == 1 else 's'}",
        rules=manifest.spec["rules"],
        table=_table(
            ("configuration", "split", "rows"), ((part.config, part.split, part.rows) for part in manifest.parts)
        ),
        about="\n".join(
            f"- `{config}`: {ABOUT[config]}." for config in dict.fromkeys(p.config for p in manifest.parts)
        ),
        formats=_table(("format", "files", "lines"), _by_format(manifest)),
        kto=_labels(manifest),
        funnel=_table(("", "trajectories"), _funnel(manifest.funnel)),
        licence=manifest.licence,
        audit="passed" if manifest.audit["ok"] else "FAILED",
        checks=_table(("check", "faults"), ((check["name"], check["count"]) for check in manifest.audit["checks"])),
        known=_table(
            ("the answers of eval are known by", "share of its rows"), figures.get("eval_known_by", {}).items()
        ),
        families=_shares(figures),
        benchmarks=_benchmarks(figures.get("benchmarks", {})),
        manifest=MANIFEST_NAME,
        audit_file=AUDIT_NAME,
        status=STATUS_NAME,
    )
    return "\n".join([*_front_matter(manifest), "", body])


def _front_matter(manifest: Manifest) -> list[str]:
    ending = "parquet" if "parquet" in manifest.spec["formats"] else "jsonl.zst"
    lines = ["---", f"license: {manifest.licence}", "pretty_name: SN15 shopping trajectories", "configs:"]
    by_config: dict[Config, list[PartSummary]] = defaultdict(list)
    for part in manifest.parts:
        by_config[part.config].append(part)
    for position, (config, parts) in enumerate(by_config.items()):
        lines.append(f"- config_name: {config}")
        lines += ["  default: true"] if position == 0 else []
        lines.append("  data_files:")
        for part in parts:
            lines += [f"  - split: {part.split}", f"    path: {part_folder(config)}/{part.split}-*.{ending}"]
    return [*lines, "---"]


def _table(head: tuple[str, ...], rows: Iterable[Iterable[object]]) -> str:
    cells = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *cells])


def _by_format(manifest: Manifest) -> list[tuple[str, int, int]]:
    files, lines = defaultdict[str, int](int), defaultdict[str, int](int)
    for entry in manifest.files:
        files[entry.format] += 1
        lines[entry.format] += entry.rows
    return [(form, files[form], lines[form]) for form in sorted(files)]


def _labels(manifest: Manifest) -> str:
    labels = manifest.kto
    if labels is None or labels.desirable_weight is None:
        return ""
    return (
        f"KTO labels: {labels.desirable} desirable, {labels.undesirable} undesirable; suggested weights "
        f"{labels.desirable_weight:.3g} and {labels.undesirable_weight:.3g}.\n"
    )


def _funnel(funnel: Mapping[str, Any]) -> list[tuple[str, int]]:
    """From all trajectories down to rows: verdicts, pools, selection."""
    verdicts = sorted(funnel.get("verdicts", {}).items(), key=lambda entry: -entry[1])
    rows = [("all trajectories", funnel.get("trajectories", 0))]
    rows += [(f"verdict: {reason}", number) for reason, number in verdicts]
    rows += [(f"kept, pool: {pool}", number) for pool, number in funnel.get("pools", {}).items()]
    rows += [(f"kept, left out: {reason}", number) for reason, number in funnel.get("selection", {}).items()]
    rows.append(("rows to be followed", funnel.get("rows", 0)))
    if "negatives" in funnel:
        rows.append(("failures given as `negative`", funnel["negatives"]["rows"]))
    return [*rows, ("of train, given as `rejected`", funnel.get("rejected_rows", 0))]


def _shares(figures: Mapping[str, Any]) -> str:
    largest = figures.get("largest_family_share", {})
    families = figures.get("families", {})
    told = [f"{families[split]} in {split}, the largest has {largest.get(split, 0):.0%}" for split in families]
    return f"Agent families (independent authors): {'; '.join(told)}." if told else ""


def _benchmarks(found: Mapping[str, Any]) -> str:
    if not found:
        return "No public benchmark was registered when this snapshot was made."
    rows = [
        (
            name,
            told["items"],
            "yes" if told["excluded_from_train"] else "no",
            *map(_contacts, told["problems"].values()),
        )
        for name, told in found.items()
    ]
    head = ("benchmark", "items", "kept out of train", "problems of train that touch it", "of eval")
    return _table(head, rows)


def _contacts(by_kind: Mapping[str, int]) -> str:
    return ", ".join(f"{number} by {kind}" for kind, number in by_kind.items() if number) or "0"


_CARD = """\
# SN15 shopping trajectories, snapshot {id}

Tool-calling trajectories of agents that competed in Bittensor SN15 (ORO), judged under the rules `{rules}`, from
{races}. Train and eval share no leak cluster.

{table}

{about}

## What a row is

`messages` and `tools` (JSON text) are for a chat template. Train only on messages whose `train` is true.

- Where it comes from: `race_id`, `eval_run_id`, `agent_version_id`, `agent_family`, `problem_id`; `cluster_id` names
  its leak cluster, `rules` and `rules_digest` what it was judged by.
- The system prompt is not the one the agent used: logs keep no prompt. `prompt_source` names ours.
- `think` says whether the assistant's words are in the logged replies (`verbatim`) or were recorded by the agent
  (`reconstructed`). `tools_source` says whether the tool schemas are published or inferred from the calls.
- Trust `claimed` means that logs written inside the agent's own process agree with each other; it is no proof.
- E-mail addresses, telephone and card numbers are masked. A row in whose text a key or token was found has no content.

## Formats

{formats}

{kto}
## What was dropped, and why

{funnel}

## What it may be used for

Licence: {licence}. The source states none for trajectories, which were written by agents and their authors; `licence`
says so row by row until it does. For research on tool-using agents; a held-out figure on `eval` may be stated with this
snapshot's id. Attribution: Bittensor SN15 (ORO), its miners as `miner_hotkey` and `agent_version_id` name them, and the
id of this snapshot.

## Why eval can be trusted: audit {audit}

The audit compares every row of train with every row of eval by brute force, sharing no code with the clustering. Faults
found by each check (see `{audit_file}`):

{checks}

{known}

A clean text proves little where the answer is not known: paraphrases that share their product look alike in nothing
else.

{families}

{benchmarks}

`{manifest}` has row counts, digests and the funnel; `{status}` has what was learned since, and is the only
file that changes.
"""
