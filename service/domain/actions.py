"""The parts of a trajectory: steps and their calls, and the lines of the log around them.

Not the wire: field names and quirks of the formats are in the modules of `wire`.
"""

from typing import Any

import msgspec


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One tool call and what came back."""

    name: str
    arguments: dict[str, Any] | str
    """A str only where the source held text that is no JSON object."""
    call_id: str = ""
    """As written by the agent; identical repeated calls share one."""
    result: Any = None
    """None: nothing came back, or nothing was recorded."""
    error_code: str | None = None
    done: bool | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One turn of the agent."""

    index: int
    """Position in the payload, from 0; the agent's own step number is not trusted."""
    think: str = ""
    calls: tuple[ToolCall, ...] = ()
    response: str = ""
    timestamp_ms: int | None = None
    """When the step was built, after its tools ran; set by the agent."""
    shopper_message: str | None = None


class NativeCall(msgspec.Struct, frozen=True, gc=False):
    """A call in a reply's `tool_calls` field. `arguments` is JSON text from honest servers; anything may be here."""

    name: str
    arguments: Any = None


class Inference(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One logged request to a language model. The prompt itself is never logged, only its size."""

    timestamp_ms: int
    """End of the request."""
    duration_ms: float = 0.0
    model: str | None = None
    content: str | None = None
    reasoning: str | None = None
    """What the model thought, where its server tells that apart from what it said."""
    native_calls: tuple[NativeCall, ...] = ()
    dropped: bool = False
    """The log keeps no reply over 2,000 characters: only its length."""
    response_length: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    failed: bool = False
    """No reply reached the agent."""
    offered_tools: bool = False
    """The request carried tool schemas."""


class Search(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One logged request to the catalogue."""

    path: str
    timestamp_ms: int
    duration_ms: float = 0.0
    params: dict[str, Any] = {}
    product_ids: tuple[str, ...] | None = None
    """Ids of what came back; None where the log does not say."""
    failed: bool = False


class EpisodeFeedback(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an envpack payload says of its own episode."""

    outcome: str | None = None
    passed: bool | None = None
    paid_reward: float | None = None
    failure_category: str | None = None
    """A `failures.FailureCategory`, or the text as it came where that is none."""
    failure_given: str | None = None
    """The category as it came."""
    termination_code: str | None = None
    family: str | None = None
    task_id: str | None = None
    schema_version: str | None = None
