"""Which functions of an agent's source are tools, and which calls ask the catalogue or a model. Follows no values."""

import ast
from collections.abc import Iterator

from service.domain.agent_code import marks as words
from service.domain.agent_code.constants import Constants
from service.domain.agent_code.scopes import ENTRY, Scope, Scopes, parameters

_NOT_SENDING = frozenset(
    {
        *("urljoin", "join", "format", "print", "info", "debug", "warning", "startswith", "endswith"),
        *("dict", "update", "append"),
    }
)
SENDING = frozenset({"post", "get", "request", "send", "urlopen", "stream", "fetch", "create"})
_PATH_KEYWORDS = ("url", "path", "endpoint")
_LONGEST_PATH = 300


def asks_model(node: ast.Call, constants: Constants) -> bool:
    """Whether a call sends a request to a language model, by its path or by the client's method."""
    if last_name(node) in _NOT_SENDING:
        return False
    return _dotted(node.func).endswith(words.REQUESTS) or _has_path(node, words.INFERENCE_PATHS, constants)


def asks_catalogue(node: ast.Call, constants: Constants) -> bool:
    """Whether a call sends a request to the catalogue."""
    return last_name(node) not in _NOT_SENDING and _has_path(node, (words.SEARCH_PATH,), constants)


def tools(scopes: Scopes, constants: Constants) -> dict[int, str]:
    """Functions that are tools, by scope, with the tool they are; empty where it is not known which.

    By their name, by a decorator, by a table or call that registers them, or because they hand their own parameters to
    the catalogue.
    """
    found = {number: name for name in words.SHOP_TOOLS for number in scopes.named.get(name, ())}
    for scope in scopes.all:
        if _is_decorated(scope):
            found.setdefault(scope.number, scope.name if scope.name in words.TOOL_NAMES else "")
    for nodes in scopes.nodes:
        for node in nodes:
            for name, function in _registered(node, constants):
                for number in scopes.named.get(function, ()):
                    found.setdefault(number, name)
    for scope in scopes.all[1:]:
        if scope.number not in found and scope.name != ENTRY:
            tool = _passes_on(scope, scopes.nodes[scope.number], constants)
            if tool in words.TOOL_NAMES:
                found[scope.number] = tool
    return found


def last_name(node: ast.AST) -> str:
    """The last name of an expression or of what it calls; empty where it has none."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([*([node.id] if isinstance(node, ast.Name) else []), *reversed(parts)])


def _has_path(node: ast.Call, paths: tuple[str, ...], constants: Constants) -> bool:
    given = [*node.args[:3], *(word.value for word in node.keywords if word.arg in _PATH_KEYWORDS)]
    spelled = map(constants.pieces, given)
    return any(path in text for text in spelled if len(text) < _LONGEST_PATH for path in paths)


def _is_decorated(scope: Scope) -> bool:
    if isinstance(scope.node, ast.Module | ast.Lambda):
        return False
    return any(last_name(one) in words.DECORATORS for one in scope.node.decorator_list)


def _registered(node: ast.AST, constants: Constants) -> Iterator[tuple[str, str]]:
    """Names of tools and the functions that a table, or a call that registers, gives them."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            name = constants.text(key)
            if name in words.TOOL_NAMES and isinstance(value, ast.Name | ast.Attribute):
                yield str(name), last_name(value)
    elif isinstance(node, ast.Call) and last_name(node) in words.DECORATORS and node.args:
        yield last_name(node.args[0]), last_name(node.args[0])


def _passes_on(scope: Scope, nodes: list[ast.AST], constants: Constants) -> str:
    """The tool whose part of the catalogue a function asks with parameters of its own; empty: none."""
    assert not isinstance(scope.node, ast.Module)
    own = {argument.arg for argument in parameters(scope.node)}
    for node in nodes:
        if isinstance(node, ast.Call) and asks_catalogue(node, constants):
            path = next((text for text in map(constants.pieces, node.args) if words.SEARCH_PATH in text), "")
            rest = [*node.args[1:], *(word.value for word in node.keywords)]
            used = {one.id for given in rest for one in ast.walk(given) if isinstance(one, ast.Name)}
            if own & used:
                return path.rpartition("/")[2]
    return ""
