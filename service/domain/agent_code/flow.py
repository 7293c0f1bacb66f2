"""Where the values in an agent's source come from: replies of a model, names in the code, the environment.

Each name, attribute and function result holds the marks of everything that may flow into it, whatever the order of
statements: a value may be said to come from more places than it does, and from none too few that are followed. Text
that is run (`exec`) is not followed. What the marks mean is `source_sinks`' to say.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable

from service.domain.agent_code import marks as words
from service.domain.agent_code import tools as source_tools
from service.domain.agent_code.constants import Constants
from service.domain.agent_code.marks import CLIENT, LOOKUP, NOTHING, REPLY, Mark, MarkKind, Marks, of, without
from service.domain.agent_code.scopes import Function, Scopes, lambda_name, parameters
from service.domain.agent_code.tools import last_name

MOST_WORK = 1_500_000
"""Values looked at and handed on in one source. An agent takes some ten thousand."""
ROUNDS = 12
"""Passes over the source at most; what takes longer to flow is not followed."""
_KEEPERS = frozenset({"append", "extend", "insert", "add", "update", "put", "appendleft", "setdefault", "write"})
_COUNTS = frozenset({"len", "int", "float", "bool", "isinstance", "hash", "id", "ord", "any", "all"})
_WORDING = frozenset({"format", "join", "strip", "str", "choice", "random"})
"""Calls that give back the words they are given."""
_CARRIED = (MarkKind.REPLY, MarkKind.TOOL, MarkKind.CALL, MarkKind.TEXT, MarkKind.ENVIRONMENT)


class Flow:
    """Marks of every expression of one source."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes = Scopes(tree)
        self.constants = Constants(tree)
        self.tools = source_tools.tools(self.scopes, self.constants)
        self._names: dict[tuple[int, str], Marks] = defaultdict(frozenset)
        self._fields: dict[str, Marks] = defaultdict(frozenset)
        self._results: dict[int, Marks] = defaultdict(frozenset)
        self._seen: dict[int, Marks] = {}
        self._changed = True
        self._work = 0
        self._import(tree)
        for _ in range(ROUNDS):
            if not self._changed:
                break
            self._changed = False
            self._seen.clear()
            for number in sorted(self.scopes.reachable):
                for node in self.scopes.nodes[number]:
                    self._pass(node, number)
        self._seen.clear()

    def marks(self, node: ast.AST | None, number: int) -> Marks:
        """What an expression in scope `number` is made of."""
        if node is None:
            return NOTHING
        if id(node) not in self._seen:
            self._count(1)
            self._seen[id(node)] = NOTHING
            found = self._marks(node, number)
            self._seen[id(node)] = found if len(found) <= words.MOST_MARKS else _fewer(found)
        return self._seen[id(node)]

    def _count(self, steps: int) -> None:
        """Keep count of the work.

        Raises:
            ValueError: it has become too much.
        """
        self._work += steps
        if self._work > MOST_WORK:
            raise ValueError("too much flows in this source")

    def joined(self, nodes: Iterable[ast.AST | None], number: int) -> Marks:
        """What several expressions are made of, together."""
        return frozenset().union(*(self.marks(node, number) for node in nodes))

    def asks_model(self, node: ast.Call, number: int) -> bool:
        """Whether a call sends a request to a language model."""
        name = last_name(node)
        if name in words.IMPORTED_REQUESTS and isinstance(node.func, ast.Name) and name not in self.scopes.named:
            return number in self.scopes.reachable and not self._names[0, name]
        return source_tools.asks_model(node, self.constants) and self._sends(node)

    def _sends(self, node: ast.Call) -> bool:
        """Whether what is called may send a request: of functions in the source, those whose own calls do."""
        own = self.scopes.named.get(last_name(node), ())
        inner = (one for number in own for one in self.scopes.nodes[number] if isinstance(one, ast.Call))
        return not own or any(last_name(one) in source_tools.SENDING for one in inner)

    def arguments(self, node: ast.Call) -> list[ast.expr]:
        """All that a call is given."""
        return [*node.args, *(keyword.value for keyword in node.keywords)]

    def _import(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", None) or ""
                for alias in node.names:
                    if (
                        words.CLIENT_MODULE in (*module.split("."), *alias.name.split("."))
                        or alias.name == words.CLIENT_CLASS
                    ):
                        self._names[0, alias.asname or alias.name.partition(".")[0]] |= {CLIENT}
                    if alias.name in words.SHOP_TOOLS and alias.asname:
                        self._names[0, alias.asname] |= {Mark(MarkKind.FUNCTION, alias.name)}

    def _pass(self, node: ast.AST, number: int) -> None:
        """Carry marks along one node."""
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._give(target, value, self.marks(value, number), number)
            case (
                ast.AnnAssign(target=target, value=value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self._give(target, value, self.marks(value, number), number)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._give(target, None, self.marks(value, number), number)
            case ast.comprehension(target=target, iter=value):
                self._give(target, None, self.marks(value, number), number)
            case ast.withitem(context_expr=value, optional_vars=target) if target is not None:
                self._give(target, None, self.marks(value, number), number)
            case ast.Return(value=value) | ast.Yield(value=value) | ast.YieldFrom(value=value):
                self._results[number] = self._more(self._results[number], self.marks(value, number))
            case ast.Match(subject=subject, cases=cases):
                for name in (n for case in cases for n in ast.walk(case.pattern) if isinstance(n, ast.MatchAs)):
                    self._name(name.name or "", self.marks(subject, number), number)
            case ast.Lambda(body=body):
                for inner in self.scopes.named[lambda_name(node)]:
                    self._results[inner] = self._more(self._results[inner], self.marks(body, inner))
            case ast.Call():
                self._bind(node, number)

    def _give(self, target: ast.AST, value: ast.AST | None, marks: Marks, number: int) -> None:
        match target:
            case ast.Name(id=name):
                self._name(name, marks, number)
            case ast.Attribute(attr=name):
                self._fields[name] = self._more(self._fields[name], marks)
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                self._give(inner, None, marks, number)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                single = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts) else ()
                for place, part in enumerate(parts):
                    self._give(part, None, self.marks(single[place], number) if single else marks, number)

    def _name(self, name: str, marks: Marks, number: int) -> None:
        self._count(1)
        key = self.scopes.home(number, name), name
        self._names[key] = self._more(self._names[key], marks)

    def _more(self, had: Marks, new: Marks) -> Marks:
        together = had | new
        if len(together) == len(had) or len(together) > words.MOST_MARKS:
            return had
        self._changed = True
        return together

    def _bind(self, node: ast.Call, number: int) -> None:
        """Hand a call's arguments to the functions that it may run, and to what keeps them."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPERS:
            self._give(node.func.value, None, self.joined(self.arguments(node), number), number)
        for function in self.functions(node.func, number):
            self._hand(node, function, number)
        handed = {n for one in self.arguments(node) for n in self.functions(one, number)}
        for function in handed:
            marks = self.joined(self.arguments(node), number)
            for parameter in parameters(self._function(function)):
                self._name(parameter.arg, without(marks, MarkKind.FUNCTION), function)

    def _function(self, number: int) -> Function:
        node = self.scopes.all[number].node
        assert not isinstance(node, ast.Module)
        return node

    def _hand(self, node: ast.Call, function: int, number: int) -> None:
        given = parameters(self._function(function))
        by_name = {parameter.arg: parameter for parameter in given}
        if given and given[0].arg in ("self", "cls"):
            given = given[1:]
        for place, argument in enumerate(node.args):
            marks = self.marks(argument, number)
            for parameter in given if isinstance(argument, ast.Starred) else given[place : place + 1] or given[-1:]:
                self._name(parameter.arg, marks, function)
        for keyword in node.keywords:
            marks = self.marks(keyword.value, number)
            rest = given if keyword.arg is None else given[-1:]
            for parameter in [by_name[keyword.arg]] if keyword.arg in by_name else rest:
                self._name(parameter.arg, marks, function)

    def functions(self, node: ast.AST, number: int) -> list[int]:
        """Functions of the source that an expression may stand for."""
        marks = of(self.marks(node, number), MarkKind.FUNCTION)
        names = {mark.name for mark in marks}
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        found = sorted(n for name in names for n in self.scopes.named.get(name, ()))
        self._count(len(found))
        return found

    def _marks(self, node: ast.AST, number: int) -> Marks:
        match node:
            case ast.Constant(value=str() as text):
                return self._text(text, node.lineno)
            case ast.JoinedStr(values=parts):
                return self.joined(parts, number) | self._text(self.constants.text(node) or "", node.lineno)
            case ast.Name(id=name):
                return self._of_name(name, number)
            case ast.Attribute(attr="environ"):
                return frozenset({Mark(MarkKind.ENVIRONMENT)})
            case ast.Attribute(value=base, attr=name):
                return without(self.marks(base, number), MarkKind.FUNCTION) | self._fields[name]
            case ast.Subscript(value=base, slice=place):
                return self._chosen(self.marks(base, number), place, number)
            case ast.Call():
                return self._result(node, number)
            case ast.Dict():
                return self._table(node, number)
            case ast.Tuple(elts=[first, *rest]) if rest and self.constants.text(first) in words.TOOL_NAMES:
                return self.marks(first, number)
            case ast.Compare() | ast.UnaryOp():
                return of(self.joined(ast.iter_child_nodes(node), number), MarkKind.REPLY)
            case ast.IfExp(body=body, orelse=other):
                return self.marks(body, number) | self.marks(other, number)
            case ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.GeneratorExp(elt=value):
                return self.marks(value, number)
            case ast.DictComp(value=value):
                return self.marks(value, number)
            case ast.Lambda():
                return frozenset({Mark(MarkKind.FUNCTION, lambda_name(node))})
            case ast.expr_context() | ast.operator() | ast.boolop():
                return NOTHING
        return self.joined(ast.iter_child_nodes(node), number)

    def _text(self, text: str, line: int) -> Marks:
        name = text.rstrip("/").rpartition("/")[2] if text.startswith(words.SEARCH_PATH) else text
        if name in words.TOOL_NAMES:
            return frozenset({Mark(MarkKind.TOOL, name, line)})
        return frozenset({Mark(MarkKind.TEXT, "", line)}) if any(letter.isalpha() for letter in text) else NOTHING

    def _of_name(self, name: str, number: int) -> Marks:
        marks = self._names[self.scopes.home(number, name), name]
        if name in self.scopes.named or (name in words.SHOP_TOOLS and not marks):
            marks |= {Mark(MarkKind.FUNCTION, name)}
        return marks | {CLIENT} if name == words.CLIENT_CLASS else marks

    def _chosen(self, base: Marks, place: ast.AST, number: int) -> Marks:
        """What is picked out of something by a name or place."""
        by = self.marks(place, number)
        if any(mark.kind is MarkKind.FUNCTION for mark in base):
            return of(base, MarkKind.FUNCTION) | of(by, MarkKind.REPLY, MarkKind.TOOL) | {LOOKUP}
        if any(mark.kind is MarkKind.ENVIRONMENT and not mark.name for mark in base):
            return without(base, MarkKind.ENVIRONMENT) | self._variable(place)
        return without(base, MarkKind.TOOL) | {REPLY} if REPLY in by else base

    def _variable(self, name: ast.AST) -> Marks:
        """A variable of the environment, by its name; `?` where the source does not say which."""
        return frozenset({Mark(MarkKind.ENVIRONMENT, self.constants.text(name) or "?")})

    def _table(self, node: ast.Dict, number: int) -> Marks:
        fields = {self.constants.text(key): value for key, value in zip(node.keys, node.values, strict=True) if key}
        name = next((fields[key] for key in words.NAME_KEYS if key in fields), None)
        given = next((fields[key] for key in words.ARGUMENT_KEYS if key in fields), None)
        named = of(self.marks(name, number), MarkKind.TOOL, MarkKind.REPLY)
        if given is not None and named and REPLY not in named and "description" not in fields:
            calls = () if is_schema(given) else (Mark(MarkKind.CALL, one.name, node.lineno) for one in named)
            return named | frozenset(calls)
        return self.joined(node.values, number)

    def _result(self, node: ast.Call, number: int) -> Marks:
        name, given = last_name(node), self.arguments(node)
        if self.asks_model(node, number):
            return frozenset({REPLY})
        if source_tools.asks_catalogue(node, self.constants) or name in words.EXECUTORS or name in words.SHOP_TOOLS:
            return NOTHING
        callee = self.marks(node.func, number)
        if name == "getenv" and given:
            return self._variable(given[0])
        if name == "getattr" and len(given) > 1:
            return of(self.marks(given[1], number), MarkKind.REPLY, MarkKind.TOOL) | {LOOKUP}
        if name in ("get", "pop", "setdefault") and given and isinstance(node.func, ast.Attribute):
            picked = self._chosen(self.marks(node.func.value, number), given[0], number)
            return picked | self.joined(given[1:], number)
        if LOOKUP in callee:
            return NOTHING
        functions = self.functions(node.func, number)
        if functions:
            return frozenset().union(*(self._results[n] for n in functions if n not in self.tools))
        carried = of(self.joined([node.func, *given], number), *_CARRIED)
        if name in _COUNTS:
            return of(carried, MarkKind.REPLY)
        if name not in _WORDING:
            carried = without(carried, MarkKind.TEXT)
        return carried | ({CLIENT} if name == words.CLIENT_CLASS else NOTHING)


def is_schema(node: ast.AST) -> bool:
    """Whether an expression describes arguments instead of giving them, or gives none that are not fixed."""
    if isinstance(node, ast.Dict):
        keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        fixed = all(isinstance(value, ast.Constant) for value in node.values)
        return fixed or "properties" in keys or "type" in keys
    return isinstance(node, ast.Constant)


def _fewer(marks: Marks) -> Marks:
    texts = sorted(of(marks, MarkKind.TEXT))
    return without(marks, MarkKind.TEXT) | frozenset(texts[: words.MOST_MARKS // 2])
