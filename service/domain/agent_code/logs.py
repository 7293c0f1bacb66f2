"""Where an agent's source touches the log that only the executor and its client write, or hides what it runs.

Reading a variable of the environment is no finding, nor is a word in a comment or a long text. Judges no trajectory.
"""

import ast
from collections.abc import Iterator

from service.domain.agent_code import marks as words
from service.domain.agent_code.code_scan import Finding, FindingKind
from service.domain.agent_code.flow import Flow
from service.domain.agent_code.marks import CLIENT, REPLY, MarkKind, of
from service.domain.agent_code.tools import last_name

ENVIRONMENT_PATH = "environment_path"
LOG_FILE = "log_file"
LOG_ENTRY = "log_entry"
PROCESS = "process"
CLIENT_PATCHED = "client"
LONGEST_PATH = 200
MOST_OWN_FIELDS = 4
"""Fields of a line of the log, `duration_ms` among them, from which a table is one."""
_RUNNERS = frozenset({"exec", "eval", "compile"})
_LOADERS = frozenset({"loads", "load"})
_BINARY = frozenset({"marshal", "pickle", "dill", "cloudpickle"})
_SHELLS = frozenset({"system", "popen", "Popen", "check_call", "check_output", "getoutput"})
_RUNS = frozenset({"run", "call", "spawnlp"})
_WRITERS = frozenset({"write_text", "write_bytes", "rename", "replace", "symlink", "truncate"})
_COPIERS = frozenset({"copy", "copyfile", "move"})
_SPACES = frozenset({"globals", "locals", "vars", "__builtins__", "__dict__"})


def findings(flow: Flow) -> Iterator[Finding]:
    """Everything found about the log and about hidden code, in no order that counts."""
    for number in sorted(flow.scopes.reachable):
        called = {id(node.func) for node in flow.scopes.nodes[number] if isinstance(node, ast.Call)}
        prose = set(_prose(flow.scopes.nodes[number]))
        for node in flow.scopes.nodes[number]:
            if id(node) not in prose:
                yield from _touches(flow, node, number)
            if isinstance(node, ast.Call):
                yield from _hides(flow, node, number)
            elif _is_runner(node) and id(node) not in called:
                yield _obfuscated(node, last_name(node))


def _is_runner(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _RUNNERS and isinstance(node.ctx, ast.Load)


def _prose(nodes: list[ast.AST]) -> Iterator[int]:
    """Texts that stand as statements, which do nothing."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def _touches(flow: Flow, node: ast.AST, number: int) -> Iterator[Finding]:
    match node:
        case ast.Constant(value=str()) | ast.BinOp() | ast.JoinedStr() | ast.Subscript() | ast.Call():
            yield from _spells(flow, node)
        case ast.Attribute(attr=name) | ast.alias(name=name) | ast.keyword(arg=name) if name in words.LOG_NAMES:
            yield _touched(node, str(name))
        case ast.Name(id=name) if name in words.LOG_NAMES and name.isupper():
            yield _touched(node, name)
    keys = _keys(flow, node)
    if "duration_ms" in keys and len(keys & words.LOG_FIELDS) >= MOST_OWN_FIELDS:
        yield _touched(node, LOG_ENTRY)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        for target in targets:
            if isinstance(target, ast.Attribute) and _patches(flow, target.value, target.attr, number):
                yield _touched(node, CLIENT_PATCHED)
    elif isinstance(node, ast.Call):
        yield from _writes(flow, node, number)


def _keys(flow: Flow, node: ast.AST) -> set[str | None]:
    """Keys of a table that the source writes out."""
    if isinstance(node, ast.Dict):
        return {flow.constants.text(key) for key in node.keys}
    if isinstance(node, ast.Call) and last_name(node) in ("dict", "update"):
        return {keyword.arg for keyword in node.keywords}
    return set()


def _spells(flow: Flow, node: ast.AST) -> Iterator[Finding]:
    """A value that spells a name of the log, however it is put together."""
    text = flow.constants.text(node)
    if text is None:
        return
    if text.strip() in words.LOG_NAMES:
        yield _touched(node, text.strip())
    elif text.startswith(words.PROCESS_FILES):
        yield _touched(node, PROCESS)
    elif len(text) < LONGEST_PATH and text.rpartition("/")[2] in words.LOG_FILES:
        yield _touched(node, LOG_FILE)


def _patches(flow: Flow, base: ast.AST, name: str, number: int) -> bool:
    """Whether setting a field of something changes the client: its class, its module, or what it keeps for itself."""
    if CLIENT not in flow.marks(base, number):
        return False
    called = last_name(base)
    is_object = not called[:1].isupper() and called != words.CLIENT_MODULE
    return not is_object or name.startswith("_") or name in ("get", "post", "request", "session")


def _writes(flow: Flow, node: ast.Call, number: int) -> Iterator[Finding]:
    name, given = last_name(node), flow.arguments(node)
    if name in _SHELLS or (name in _RUNS and _module(node.func) in ("os", "subprocess")):
        said = "".join(flow.constants.pieces(part) for one in given for part in ast.walk(one))
        for word in sorted(words.LOG_NAMES):
            if word in said:
                yield _touched(node, word)
    if name == "setattr" and given and CLIENT in flow.marks(given[0], number):
        yield _touched(node, CLIENT_PATCHED)
    is_private = isinstance(node.func, ast.Attribute) and name.startswith("_") and not name.startswith("__")
    if is_private and CLIENT in flow.marks(node.func, number):
        yield _touched(node, CLIENT_PATCHED)
    if _is_write(flow, node, name):
        paths = [*given, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        variables = of(flow.joined(paths, number), MarkKind.ENVIRONMENT)
        if any(mark.name not in words.HARMLESS_VARIABLES for mark in variables):
            yield _touched(node, ENVIRONMENT_PATH)


def _is_write(flow: Flow, node: ast.Call, name: str) -> bool:
    if name in _WRITERS:
        return bool(node.args) and (name != "replace" or len(node.args) == 1 or _module(node.func) == "os")
    if name in _COPIERS:
        return _module(node.func) == "shutil"
    if name not in ("open", "fdopen"):
        return False
    modes = [word.value for word in node.keywords if word.arg in ("mode", "flags")]
    place = 1 if isinstance(node.func, ast.Name) or _module(node.func) in ("io", "os", "codecs") else 0
    modes += node.args[place : place + 1]  # unlike in `open(path, mode)`, the mode comes first in `path.open(mode)`
    if not modes:
        return False
    mode = flow.constants.text(modes[0])
    return mode is None or any(letter in mode for letter in "wax+")


def _module(called: ast.AST) -> str:
    """The name before the last, as in `os.open`; empty where there is none."""
    return called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""


def _hides(flow: Flow, node: ast.Call, number: int) -> Iterator[Finding]:
    name, given = last_name(node), flow.arguments(node)
    plain = isinstance(node.func, ast.Name)
    of_module = _module(node.func)
    looked_up = node.func.slice if isinstance(node.func, ast.Subscript) and _is_space(node.func.value) else None
    unmarked = bool(given) and isinstance(given[0], ast.Name) and not flow.marks(given[0], number)
    found = {
        name: (name in _RUNNERS and (plain or of_module == "builtins"))
        or (name in ("__import__", "import_module") and bool(given) and flow.constants.text(given[0]) is None)
        or name in ("FunctionType", "CodeType"),
        of_module: (of_module in _BINARY and name in _LOADERS) or of_module == "ctypes",
        "getattr": name == "getattr" and unmarked and len(given) > 1 and _is_hidden(flow, given[1], number),
        "lookup": looked_up is not None and _is_hidden(flow, looked_up, number),
    }
    for means, is_used in found.items():
        if is_used:
            yield _obfuscated(node, means)


def _is_space(node: ast.AST) -> bool:
    node = node.func if isinstance(node, ast.Call) else node
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in _SPACES


def _is_hidden(flow: Flow, name: ast.AST, number: int) -> bool:
    """Whether a name neither stands in the source nor comes out of a reply."""
    spelled, marks = flow.constants.text(name), flow.marks(name, number)
    if spelled in _RUNNERS:
        return True
    return spelled is None and REPLY not in marks and not of(marks, MarkKind.TOOL)


def _touched(node: ast.AST, name: str) -> Finding:
    return Finding(FindingKind.TOUCHES_LOG, getattr(node, "lineno", 1), name)


def _obfuscated(node: ast.AST, name: str) -> Finding:
    return Finding(FindingKind.OBFUSCATED, getattr(node, "lineno", 1), name.strip("_"))
