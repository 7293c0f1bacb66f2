"""Specs of snapshots as files: read one, print one to start from. What they mean is `domain.rows.spec`'s."""

from pathlib import Path

from service.domain.rows.spec import LONGEST_BYTES, Options, read_options
from service.errors import ErrorCode, SluiceError

TEMPLATE = """\
# What a snapshot is to hold. Every key may be left out; what stands here is what unasked-for snapshots are made by.

rules = "sluice-1"                  # rule set whose verdicts count: `sluice rules list`
splits = ["train", "eval"]
formats = ["parquet", "jsonl.zst", "kto", "prompts", "atif"]  # and "sharegpt"

salted_hotkeys = false              # name miners by a keyed hash; workers need SLUICE_HOTKEY_SALT

[wanted]                            # empty lists ask for anything
configs = ["agentic", "unattributed", "negative", "rejected"]
kinds = []                          # legacy_shoppingbench, envpack, atif, messages
classes = []                        # agentic, unknown, ...: see `sluice stats`
categories = []                     # product, shop, voucher, ...
races = []                          # race ids
# since = "2026-01-01"              # first day (UTC) on which a run may have been completed
# until = "2026-12-31"              # last day
# min_reward = 1.0                  # 0 to 1
# min_reasoning = 0.5               # 0.1 to 0.9; leaves unjudged ones out
unanimous = false                   # only what all validators agree on who ran the agent version at the problem
# max_tokens = 8192                 # exact, of the rendered chat, tools included

[selection]
keep = "best"                       # or "all": duplicates too, no caps, no balance
per_problem = 8
per_problem_family = 2
largest_share = 0.6                 # most of the training rows that one category may be: 0.5 to 1
min_trust = "claimed"               # or "witnessed"
require_confirmed_query = true
"""


def read(path: Path) -> Options:
    """The options in a file: JSON if it is called `.json`, else TOML.

    Raises:
        SluiceError: BAD_INPUT that names the file, and the key where there is one.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_BYTES + 1)
    except OSError as error:
        raise SluiceError(ErrorCode.BAD_INPUT, f"{path}: {error.strerror or error}") from error
    try:
        return read_options(content, is_json=path.suffix.lower() == ".json")
    except SluiceError as error:
        raise SluiceError(error.code, f"{path}: {error.message}") from error
