"""Scopes of a parsed source: which function a node stands in, which names it binds, and which functions may run.

Neither values nor findings. A function that nothing mentions cannot run and is left out of every finding.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

ENTRY = "agent_main"
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Scope(NamedTuple):
    """A function, or the file as a whole (`node` is its module)."""

    number: int
    """0 is the module."""
    node: ast.Module | Function
    parent: int | None
    name: str


MOST_SCOPES = 3_000


class Scopes:
    """All scopes of a source.

    Raises:
        ValueError: there are more than an agent has.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.all: list[Scope] = [Scope(0, tree, None, "")]
        self.nodes: list[list[ast.AST]] = [[]]
        """Nodes of each scope, those of inner functions left out, in order of the source."""
        self.bound: list[set[str]] = [set()]
        self.named: dict[str, list[int]] = defaultdict(list)
        """Functions by name, methods included."""
        self._collect()
        self.reachable = self._reachable()

    def _collect(self) -> None:
        waiting: list[tuple[int, ast.AST]] = [(0, self.all[0].node)]
        while waiting:
            number, root = waiting.pop()
            stack = [root] if number == 0 else list(reversed(_inside(root)))
            while stack:
                node = stack.pop()
                self.nodes[number].append(node)
                self._bind(number, node)
                if isinstance(node, Function) and node is not self.all[number].node:
                    waiting.append((self._open(number, node), node))
                    stack += reversed(_outside(node))
                else:
                    stack += reversed(list(live_children(node)))

    def _open(self, parent: int, node: Function) -> int:
        if len(self.all) > MOST_SCOPES:
            raise ValueError("too many functions in this source")
        name = lambda_name(node) if isinstance(node, ast.Lambda) else node.name
        scope = Scope(len(self.all), node, parent, name)
        self.all.append(scope)
        self.nodes.append([])
        self.bound.append({argument.arg for argument in parameters(node)})
        self.named[name].append(scope.number)
        return scope.number

    def _bind(self, number: int, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self.bound[number].add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.bound[number].difference_update(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self.bound[number].add(node.name)

    def home(self, number: int, name: str) -> int:
        """The scope that a name belongs to where it is used in scope `number`; the module where none binds it."""
        at: int | None = number
        while at is not None:
            if name in self.bound[at]:
                return at
            at = self.all[at].parent
        return 0

    def _reachable(self) -> set[int]:
        """Scopes that may run: the module, the entry, and all that their code mentions."""
        mentioned = {ENTRY} if ENTRY in self.named else set(self.named)
        reached: set[int] = set()
        waiting = [0]
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            for node in self.nodes[number]:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    mentioned.add(node.id)
                elif isinstance(node, ast.Attribute):
                    mentioned.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in self.named:
                    mentioned.add(node.value)
            waiting += [
                scope.number
                for scope in self.all[1:]
                if scope.number not in reached
                and (scope.name in mentioned or scope.name.startswith("__") or self._is_within(scope, reached))
            ]
        return reached

    def _is_within(self, scope: Scope, reached: set[int]) -> bool:
        """Whether a nameless or decorated function stands in a scope that runs."""
        if isinstance(scope.node, ast.Module):
            return False
        return scope.parent in reached and (isinstance(scope.node, ast.Lambda) or bool(scope.node.decorator_list))


def lambda_name(node: ast.Lambda) -> str:
    """What a function without a name goes by; no name of a source is like it."""
    return f"<{node.lineno}:{node.col_offset}>"


def parameters(node: Function) -> list[ast.arg]:
    """Parameters by place, then by name, then those that take the rest."""
    arguments = node.args
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def live_children(node: ast.AST) -> Iterator[ast.AST]:
    """Children, without what stands under a condition that is false in so many words."""
    skipped: list[ast.stmt] = []
    if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant):
        skipped = node.orelse if node.test.value else node.body
    for child in ast.iter_child_nodes(node):
        if not any(child is one for one in skipped):
            yield child


def _inside(node: ast.AST) -> list[ast.AST]:
    assert isinstance(node, Function)
    return [node.body] if isinstance(node, ast.Lambda) else list(node.body)


def _outside(node: Function) -> list[ast.AST]:
    """What of a function belongs to the scope around it."""
    defaults: list[ast.AST] = [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
    return defaults if isinstance(node, ast.Lambda) else [*node.decorator_list, *defaults]
