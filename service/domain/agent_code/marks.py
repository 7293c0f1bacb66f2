"""What a value in an agent's source may be made of, and the words by which the scan knows tools, models and logs.

Data, not behaviour: `source_flow` carries marks along, `source_sinks` and `source_logs` say what is found where.
"""

from enum import StrEnum
from typing import NamedTuple


class MarkKind(StrEnum):
    """One ingredient of a value."""

    REPLY = "reply"
    """Out of a model's reply."""
    TOOL = "tool"
    """A tool's name that stands in the source."""
    CALL = "call"
    """A tool call that code put together, with arguments."""
    FUNCTION = "function"
    LOOKUP = "lookup"
    """A function that is looked up by a name."""
    TEXT = "text"
    """Words that stand in the source."""
    ENVIRONMENT = "environment"
    """Out of a variable of the environment, which `name` names; empty: the environment itself."""
    CLIENT = "client"
    """The client whose log the executor keeps, or its module."""


class Mark(NamedTuple):
    """An ingredient, with its name and the line it comes from where that matters."""

    kind: MarkKind
    name: str = ""
    line: int = 0


Marks = frozenset[Mark]
NOTHING: Marks = frozenset()
REPLY = Mark(MarkKind.REPLY)
LOOKUP = Mark(MarkKind.LOOKUP)
CLIENT = Mark(MarkKind.CLIENT)
MOST_MARKS = 400
"""Marks that one value carries at most."""


def has(marks: Marks, kind: MarkKind) -> bool:
    """Whether any ingredient is of a kind."""
    return any(mark.kind is kind for mark in marks)


def of(marks: Marks, *kinds: MarkKind) -> Marks:
    """The ingredients of some kinds."""
    return frozenset(mark for mark in marks if mark.kind in kinds)


def without(marks: Marks, *kinds: MarkKind) -> Marks:
    """The ingredients of all other kinds."""
    return frozenset(mark for mark in marks if mark.kind not in kinds)


SHOP_TOOLS = frozenset(
    {
        *("find_product", "view_product_information", "recommend_product", "calculate_voucher"),
        *("check_product_match", "find_products_in_same_shop", "place_test_order", "terminate"),
    }
)
"""Names that mean a tool wherever they stand."""
OTHER_TOOLS = frozenset({"search", "filter", "web_search"})
"""Names that mean a tool only where one is called by name."""
TOOL_NAMES = SHOP_TOOLS | OTHER_TOOLS
EXECUTORS = frozenset(
    {"execute_tool_call", "execute_tool", "run_tool", "call_tool", "invoke_tool", "dispatch_tool", "use_tool"}
)
"""Functions of the harness's interface that take a tool's name first."""
EXECUTOR_VERBS = ("call", "exec", "invoke", "run", "dispatch", "step", "act", "perform", "tool")
"""Parts of the names of functions from elsewhere that may take a tool's name first."""
DECORATORS = frozenset({"Tool", "tool", "register_tool", "function_tool"})
NAME_KEYS = ("name", "tool", "tool_name", "function")
ARGUMENT_KEYS = ("parameters", "arguments", "args", "params", "input")
"""Keys of a call as agents and models write it."""
STEP_MAKER = "create_dialogue_step"

_WORDS = {
    "find_product": "find search lookup query",
    "search": "search find lookup query",
    "filter": "filter narrow",
    "web_search": "web search browse",
    "view_product_information": "view details inspect look info information",
    "recommend_product": "recommend answer final finish choose select buy",
    "place_test_order": "order buy purchase finish",
    "terminate": "terminate finish done stop end final answer complete",
    "calculate_voucher": "calculate voucher",
    "check_product_match": "check verify match",
    "find_products_in_same_shop": "shop same",
}
ACTION_WORDS = {tool: frozenset(words.split()) for tool, words in _WORDS.items()}
"""Words by which a reply may ask for a tool under another name."""

SEARCH_PATH = "/search/"
INFERENCE_PATHS = ("/chat/completions", "/inference/", "/v1/completions", "/v1/messages", "/v1/responses")
REQUESTS = (
    *("completions.create", "responses.create", "messages.create", "chat.complete", "litellm.completion"),
    *("generate_content", "chat_completion", "acompletion"),
)
"""How calls of model clients end."""
IMPORTED_REQUESTS = frozenset({"call_llm", "llm", "ask_llm", "chat_completion", "inference", "query_llm", "completion"})
"""Functions that ask a model where they are imported and not defined."""
CLIENT_CLASS = "ProxyClient"
CLIENT_MODULE = "proxy_client"

LOG_NAMES = frozenset({"REQUEST_LOG_FILE", "INFERENCE_STATS_FILE", "SANDBOX_OUTPUT_FILE", "proxy_calls"})
LOG_FILES = frozenset({"inference_stats.jsonl", "output.jsonl", "request_log.jsonl", "proxy_log.jsonl"})
"""What the executor calls the files in its folder."""
PROCESS_FILES = ("/proc/self/environ", "/proc/self/fd", "/proc/self/mem", "/proc/1/", "/proc/self/task")
"""Where a process can look for them without their names."""
LOG_FIELDS = frozenset({"method", "path", "timestamp", "duration_ms", "status_code", "json_data", "response"})
"""Fields of a line of the log."""
HARMLESS_VARIABLES = frozenset({"HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "HF_HOME", "PWD"})
"""Variables that name folders of the agent's own."""
