"""Where an agent's source calls tools, asks models and writes think texts, and who decides there.

A tool that is looked up by a name out of a reply is the model's call; one that is called by a name that stands in the
source is code's, unless the reply had asked for that tool at a branch around it. Judges no trajectory.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.domain.agent_code import marks as words
from service.domain.agent_code.code_scan import Finding, FindingKind
from service.domain.agent_code.flow import Flow
from service.domain.agent_code.marks import LOOKUP, NOTHING, REPLY, MarkKind, Marks, has, of
from service.domain.agent_code.scopes import live_children
from service.domain.agent_code.tools import asks_catalogue, last_name

LOOKED_UP = "looked_up"
"""Name of a finding where a reply says which tool."""
ECHOED = "echoed"
"""Name of a finding where a call that code made is put into a prompt."""
THINK = "think"
REQUEST = "request"
NO_TOOL: frozenset[str] = frozenset()
ANY_TOOL = frozenset({"*"})
"""Stands for whichever tools a branch does not name."""
_TESTS = frozenset({"startswith", "endswith", "search", "match", "fullmatch"})
_LEAVING = (ast.Continue, ast.Return, ast.Raise, ast.Break)
_RECORD_KEYS = frozenset({"parameters", "arguments"})
_RESULT_KEYS = frozenset({"result", "tool_call_id"})


class Site(NamedTuple):
    """A node with the scope it stands in and the tools that a reply has asked for at the branches around it."""

    node: ast.AST
    scope: int
    asked: frozenset[str]


def findings(flow: Flow) -> Iterator[Finding]:
    """Everything found about tools, models and think texts, in no order that counts."""
    inner = _within_tools(flow)
    for scope in flow.scopes.all:
        if scope.number in flow.scopes.reachable:
            for site in _sites(flow, scope.number):
                yield from _at(flow, site, is_tool=scope.number in inner)


def _within_tools(flow: Flow) -> set[int]:
    """Scopes that are tools, or functions inside one: what they ask for is the tool's doing."""
    found = set(flow.tools)
    for scope in flow.scopes.all:
        if scope.parent in found:
            found.add(scope.number)
    return found


def _sites(flow: Flow, number: int) -> Iterator[Site]:
    node = flow.scopes.all[number].node
    bodies: Sequence[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
    stack = _in_order(flow, bodies, number, NO_TOOL)
    while stack:
        site = stack.pop()
        yield site
        stack += reversed(_below(flow, site))


def _below(flow: Flow, site: Site) -> list[Site]:
    node, number, asked = site
    match node:
        case ast.FunctionDef(decorator_list=outer) | ast.AsyncFunctionDef(decorator_list=outer):
            return [Site(child, number, asked) for child in outer]
        case ast.Lambda():
            return []
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            chosen = asked_for(flow, test, number)
            other = ANY_TOOL if chosen else NO_TOOL
            body = node.body if isinstance(node.body, list) else [node.body]
            orelse = node.orelse if isinstance(node.orelse, list) else [node.orelse]
            live = set(map(id, live_children(node)))
            within = _in_order(flow, [one for one in body if id(one) in live], number, asked | chosen)
            without = _in_order(flow, [one for one in orelse if id(one) in live], number, asked | other)
            return [Site(test, number, asked), *within[::-1], *without[::-1]]
        case ast.Match(subject=subject, cases=cases):
            by_reply = REPLY in flow.marks(subject, number)
            found = [Site(subject, number, asked)]
            for case in cases:
                chosen = _named(flow, case.pattern) or ANY_TOOL if by_reply else NO_TOOL
                found += _in_order(flow, case.body, number, asked | chosen)[::-1]
            return found
    return [Site(child, number, asked) for child in live_children(node)]


def _in_order(flow: Flow, body: Sequence[ast.AST], number: int, asked: frozenset[str]) -> list[Site]:
    """The statements of a body, last first; after `if name != tool: continue` the rest is for that tool."""
    found = []
    for statement in body:
        found.append(Site(statement, number, asked))
        if isinstance(statement, ast.If) and statement.body and isinstance(statement.body[-1], _LEAVING):
            differing = [
                one
                for one in ast.walk(statement.test)
                if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.NotEq | ast.NotIn)
            ]
            for compare in differing:
                asked |= asked_for(flow, compare, number)
    return found[::-1]


def asked_for(flow: Flow, test: ast.AST, number: int) -> frozenset[str]:
    """The tools that a condition compares something out of a reply with; `*` never."""
    found: set[str] = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and REPLY in flow.joined([node.left, *node.comparators], number):
            found |= _named(flow, node)
        elif isinstance(node, ast.Call) and last_name(node) in _TESTS:
            found |= _named(flow, node) if REPLY in flow.joined([node.func, *node.args], number) else NO_TOOL
    return frozenset(found)


def _named(flow: Flow, node: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for one in ast.walk(node):
        text = flow.constants.text(one) if isinstance(one, ast.expr) else None
        if text is None or len(text) > 80:
            continue
        said = {part for part in "".join(c if c.isalpha() else " " for c in text.lower()).split()}
        found |= {tool for tool in words.TOOL_NAMES if tool in text or said & words.ACTION_WORDS[tool]}
    return frozenset(found)


def _at(flow: Flow, site: Site, *, is_tool: bool) -> Iterator[Finding]:
    node, number, _ = site
    if isinstance(node, ast.Call):
        if flow.asks_model(node, number):
            yield Finding(FindingKind.MODEL_REQUEST, node.lineno, REQUEST)
            for mark in sorted(of(flow.joined(flow.arguments(node), number), MarkKind.CALL)):
                yield Finding(FindingKind.CODE_DISPATCH, mark.line, ECHOED)
        elif not is_tool:
            yield from _call(flow, node, site)
        if last_name(node) == words.STEP_MAKER and (node.args or node.keywords):
            think = next(
                (word.value for word in node.keywords if word.arg == THINK), node.args[0] if node.args else None
            )
            yield from _think(flow, think, number)
    elif isinstance(node, ast.Dict) and not is_tool:
        yield from _record(flow, node, number)
    elif isinstance(node, ast.Return | ast.Yield) and not is_tool:
        yield from _handed_back(flow, node, number)


def _call(flow: Flow, node: ast.Call, site: Site) -> Iterator[Finding]:
    number, given = site.scope, flow.arguments(node)
    callee = flow.marks(node.func, number)
    name = last_name(node)
    if name in words.EXECUTORS and name not in flow.scopes.named and given:
        yield from _by_name(flow, node, given[0], given[1:], site)
    elif given and isinstance(given[0], ast.Name) and given[0].id in words.EXECUTORS and len(given) > 1:
        yield from _by_name(flow, node, given[1], given[2:], site)  # handed to a pool, or made a partial of
    elif given and isinstance(given[0], ast.Name) and given[0].id in words.SHOP_TOOLS and not words.DECORATORS & {name}:
        yield _literal(flow, node, given[0].id, given[1:], site)
    elif LOOKUP in callee and not isinstance(node.func, ast.Attribute):
        yield from _decided(callee, node.lineno)
    elif asks_catalogue(node, flow.constants):
        path = next(one for one in given if words.SEARCH_PATH in flow.constants.pieces(one))
        yield from _by_name(flow, node, path, [one for one in given if one is not path], site)
    else:
        tools = {flow.tools[one] for one in flow.functions(node.func, number) if one in flow.tools}
        if not tools and name in words.SHOP_TOOLS:
            tools = {name}
        for tool in sorted(tools):
            yield _literal(flow, node, tool or name, given, site)
        if not tools and name not in flow.scopes.named and len(given) > 1:
            yield from _elsewhere(flow, node, name, site)


def _elsewhere(flow: Flow, node: ast.Call, name: str, site: Site) -> Iterator[Finding]:
    """A function that is not in the source, given what may be a tool's name and its arguments."""
    spelled = name.lower()
    first, *rest = flow.arguments(node)
    is_named = flow.constants.text(first) in words.TOOL_NAMES and any(verb in spelled for verb in words.EXECUTOR_VERBS)
    if is_named or "tool" in spelled:
        yield from _by_name(flow, node, first, rest, site)


def _by_name(flow: Flow, node: ast.Call, name: ast.expr, rest: Sequence[ast.expr], site: Site) -> Iterator[Finding]:
    spelled = flow.constants.text(name)
    tool = spelled.rstrip("/").rpartition("/")[2] if spelled else ""
    if tool in words.TOOL_NAMES:
        yield _literal(flow, node, tool, rest, site)
    else:
        yield from _decided(flow.marks(name, site.scope), node.lineno)


def _decided(name: Marks, line: int) -> Iterator[Finding]:
    """Who decides, by what a tool's name is made of."""
    if REPLY in name:
        yield Finding(FindingKind.MODEL_DISPATCH, line, LOOKED_UP)
    for mark in sorted(of(name, MarkKind.TOOL)):
        yield Finding(FindingKind.CODE_DISPATCH, mark.line, mark.name)


def _literal(flow: Flow, node: ast.Call, tool: str, given: Sequence[ast.expr], site: Site) -> Finding:
    """A tool is called by a name that stands in the source: the model's doing only where its reply asked for it."""
    from_reply = REPLY in flow.joined(given, site.scope)
    asked = tool in site.asked or (site.asked >= ANY_TOOL and from_reply)
    fixed = not given or all(flow.constants.fold(one) is not None or _is_fixed(one) for one in given)
    kind = FindingKind.MODEL_DISPATCH if asked and (from_reply or fixed) else FindingKind.CODE_DISPATCH
    return Finding(kind, node.lineno, tool if tool in words.TOOL_NAMES else LOOKED_UP)


def _is_fixed(node: ast.expr) -> bool:
    return all(isinstance(one, ast.Constant | ast.Dict | ast.expr_context) for one in ast.walk(node))


def _record(flow: Flow, node: ast.Dict, number: int) -> Iterator[Finding]:
    """A call with its result that code writes down, instead of having it carried out."""
    fields = {
        key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)
    }
    if "name" in fields and _RECORD_KEYS & fields.keys() and _RESULT_KEYS & fields.keys():
        yield from _decided(flow.marks(fields["name"], number), node.lineno)
    if THINK in fields:
        yield from _think(flow, fields[THINK], number)


def _handed_back(flow: Flow, node: ast.Return | ast.Yield, number: int) -> Iterator[Finding]:
    """A call that a function gives back for others to carry out."""
    for mark in sorted(of(flow.marks(node.value, number), MarkKind.CALL)):
        yield Finding(FindingKind.CODE_DISPATCH, mark.line, mark.name)
    value = node.value.elts[0] if isinstance(node.value, ast.List) and node.value.elts else node.value
    if isinstance(value, ast.Dict):
        fields = {
            key.value: one for key, one in zip(value.keys, value.values, strict=True) if isinstance(key, ast.Constant)
        }
        name = next((fields[key] for key in words.NAME_KEYS if key in fields), None)
        if name is not None and not fields.keys().isdisjoint(words.ARGUMENT_KEYS):
            yield from _decided(flow.marks(name, number), value.lineno)


def _think(flow: Flow, node: ast.AST | None, number: int) -> Iterator[Finding]:
    marks = flow.marks(node, number) if node is not None else NOTHING
    if not has(marks, MarkKind.REPLY):
        for mark in sorted(of(marks, MarkKind.TEXT)):
            yield Finding(FindingKind.CONSTANT_THINK, mark.line, THINK)
