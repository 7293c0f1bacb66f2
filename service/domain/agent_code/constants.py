"""Constant folding over a parsed source: what an expression spells, where that follows from the source alone.

Nothing of the source is run: a few operations on text and numbers are done here, with limits. Not flow analysis: a name
is known only if it is given a value in one place of its file.
"""

import ast
import base64
import binascii
import codecs
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

LONGEST = 20_000
"""Characters or bytes of a folded value; anything longer is not followed."""
MOST_CHARACTERS = 1_000
LARGEST_FORM = 50
"""Of a text that is spelled number by number: its length, and the nodes of what is done to each."""
_PLAIN_PERCENT = re.compile(r"(?:[^%]|%[sdr%])*")
_PLAIN_BRACES = re.compile(r"(?:[^{}]|\{\d*\}|\{\{|\}\})*")
"""Forms that fill values in and ask for no width."""
DEEPEST = 60
GAP = "\0"
"""Stands for what the source does not say."""
Constant = str | bytes | int

_TEXT: Mapping[str, Callable[..., Any]] = {
    name: getattr(str, name)
    for name in ("lower", "upper", "strip", "lstrip", "rstrip", "title", "swapcase", "replace", "removeprefix")
} | {"encode": lambda text, *_: text.encode("utf-8", "replace")}
_BYTES: Mapping[str, Callable[..., Any]] = {
    "decode": lambda raw, *_: raw.decode("utf-8", "replace"),
    "replace": bytes.replace,
    "hex": lambda raw, *_: raw.hex(),
}
_DECODERS: Mapping[str, Callable[..., Any]] = {
    "b64decode": base64.b64decode,
    "urlsafe_b64decode": base64.urlsafe_b64decode,
    "standard_b64decode": base64.standard_b64decode,
    "b32decode": base64.b32decode,
    "b16decode": base64.b16decode,
    "b85decode": base64.b85decode,
    "unhexlify": binascii.unhexlify,
    "fromhex": bytes.fromhex,
    "chr": chr,
    "reversed": lambda value: value[::-1],
}
_CODECS = frozenset({"rot13", "rot_13", "hex", "base64"})


class Constants:
    """The values of one file's names and expressions."""

    def __init__(self, tree: ast.AST) -> None:
        given: dict[str, ast.expr] = {}
        times: Counter[str] = Counter()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                times[node.id] += 1
            elif isinstance(node, ast.arg):
                times[node.arg] += 1
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                given[node.targets[0].id] = node.value
        self._names = {name: value for name, value in given.items() if times[name] == 1}
        self._known: dict[str, Constant | None] = {}
        self._folded: dict[int, Constant | None] = {}
        self._pieces: dict[int, str] = {}
        self._in_loop = False

    def fold(self, node: ast.AST | None, depth: int = 0) -> Constant | None:
        """What an expression spells; None where the source does not say."""
        if node is None or depth > DEEPEST:
            return None
        if id(node) in self._folded and not self._in_loop:
            return self._folded[id(node)]
        try:
            value = self._fold(node, depth + 1)
        except (ValueError, TypeError, LookupError, OverflowError):
            value = None
        value = value if isinstance(value, int) or (value is not None and len(value) <= LONGEST) else None
        if not self._in_loop:
            self._folded[id(node)] = value
        return value

    def text(self, node: ast.AST | None) -> str | None:
        """The same, where it is text."""
        value = self.fold(node)
        return value if isinstance(value, str) else None

    def pieces(self, node: ast.AST | None, depth: int = 0) -> str:
        """The constant parts of a text that is put together, with a gap for every other part."""
        if node is None or depth > DEEPEST:
            return ""
        if id(node) not in self._pieces:
            self._pieces[id(node)] = GAP  # what is made of itself
            self._pieces[id(node)] = self._put_together(node, depth)[:LONGEST]
        return self._pieces[id(node)]

    def _put_together(self, node: ast.AST, depth: int) -> str:
        whole = self.text(node)
        if whole is not None:
            return whole
        match node:
            case ast.Name(id=name) if name in self._names:
                return self.pieces(self._names[name], depth + 8)
            case ast.JoinedStr(values=parts) | ast.Call(args=parts):
                return GAP.join(self.pieces(part, depth + 1) for part in parts[:LONGEST])
            case ast.BinOp(left=left, right=right):
                return self.pieces(left, depth + 1) + GAP + self.pieces(right, depth + 1)
            case ast.FormattedValue(value=value):
                return self.pieces(value, depth + 1)
        return GAP

    def _fold(self, node: ast.AST, depth: int) -> Constant | None:
        match node:
            case ast.Constant(value=str() | bytes() | int() as value):
                return value
            case ast.Name(id=name):
                return self._name(name, depth)
            case ast.JoinedStr(values=parts):
                return self._joined("", parts, depth)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                folded = self.fold(value, depth)
                return None if folded is None or isinstance(folded, bytes) else str(folded)
            case ast.BinOp():
                return self._binary(node, depth)
            case ast.Subscript():
                return self._part(node, depth)
            case ast.Call():
                return self._call(node, depth)
        return None

    def _name(self, name: str, depth: int) -> Constant | None:
        if name not in self._known:
            self._known[name] = None  # a name that is spelled by itself spells nothing
            self._known[name] = self.fold(self._names.get(name), depth)
        return self._known[name]

    def _joined(self, between: str, parts: list[ast.expr], depth: int) -> str | None:
        texts: list[str] = []
        size = 0
        for part in parts:
            text = self.fold(part, depth)
            size += len(between) + (len(text) if isinstance(text, str) else LONGEST)
            if size > LONGEST or not isinstance(text, str):
                return None
            texts.append(text)
        return between.join(texts)

    def _binary(self, node: ast.BinOp, depth: int) -> Constant | None:
        left = self.fold(node.left, depth)
        if isinstance(node.op, ast.Mod) and isinstance(left, str):
            filling = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            values = [self.fold(value, depth) for value in filling]
            return left % tuple(values) if None not in values and _PLAIN_PERCENT.fullmatch(left) else None
        right = self.fold(node.right, depth)
        if left is None or right is None:
            return None
        return _computed(node.op, left, right)

    def _part(self, node: ast.Subscript, depth: int) -> Constant | None:
        base = node.value
        if isinstance(base, ast.Name):
            base = self._names.get(base.id, base)
        if isinstance(base, ast.Dict):
            key = self.fold(node.slice, depth)
            found = [v for k, v in zip(base.keys, base.values, strict=True) if k and self.fold(k, depth) == key]
            return self.fold(found[-1], depth) if key is not None and found else None
        if isinstance(base, ast.List | ast.Tuple):
            place = self.fold(node.slice, depth)
            return self.fold(base.elts[place], depth) if isinstance(place, int) else None
        whole = self.fold(base, depth)
        if not isinstance(whole, str | bytes):
            return None
        if not isinstance(node.slice, ast.Slice):
            place = self.fold(node.slice, depth)
            return whole[place] if isinstance(place, int) else None
        ends = [self._end(end, depth) for end in (node.slice.lower, node.slice.upper, node.slice.step)]
        return whole[slice(*ends)]

    def _end(self, node: ast.expr | None, depth: int) -> int | None:
        """One end of a slice.

        Raises:
            ValueError: it is given, and the source does not say as what.
        """
        if node is None:
            return None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.fold(node.operand, depth)
            if isinstance(value, int):
                return -value
        value = self.fold(node, depth)
        if not isinstance(value, int):
            raise ValueError("no number")
        return value

    def _call(self, node: ast.Call, depth: int) -> Constant | None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if isinstance(called, ast.Attribute):
            base = self.fold(called.value, depth)
            if isinstance(base, str) and name == "join" and len(node.args) == 1:
                return self._join(base, node.args[0], depth)
            if isinstance(base, str) and name == "format" and _PLAIN_BRACES.fullmatch(base):
                values = [self.fold(value, depth) for value in node.args]
                return None if None in values else base.format(*values)
            methods = _TEXT if isinstance(base, str) else _BYTES if isinstance(base, bytes) else {}
            if name in methods:
                values = [self.fold(value, depth) for value in node.args]
                if None in values or any(len(str(base)) * len(str(value)) > LONGEST for value in values[1:]):
                    return None
                return methods[name](base, *values)  # type: ignore[no-any-return]
        if name == "bytes" and len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple):
            numbers = [self.fold(value, depth) for value in node.args[0].elts]
            return bytes(number for number in numbers if isinstance(number, int)) if None not in numbers else None
        if name == "decode" and len(node.args) == 2 and self.fold(node.args[1], depth) in _CODECS:
            coded: Any = self.fold(node.args[0], depth)
            decoded = codecs.decode(coded, str(self.fold(node.args[1], depth)))
            return decoded if isinstance(decoded, str | bytes) else None
        if name in _DECODERS and len(node.args) == 1:
            argument = self.fold(node.args[0], depth)
            return None if argument is None else _DECODERS[name](argument)
        return None

    def _join(self, between: str, parts: ast.expr, depth: int) -> str | None:
        if isinstance(parts, ast.List | ast.Tuple):
            return self._joined(between, parts.elts, depth)
        if isinstance(parts, ast.GeneratorExp | ast.ListComp):
            return self._characters(between, parts, depth)
        whole = self.fold(parts, depth)
        return between.join(whole) if isinstance(whole, str) and len(whole) * len(between) <= LONGEST else None

    def _characters(self, between: str, parts: ast.GeneratorExp | ast.ListComp, depth: int) -> str | None:
        """Text spelled as `chr(n) for n in numbers`, with a fixed number added, taken away or mixed in."""
        (loop, *more) = parts.generators
        if more or loop.ifs or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.List | ast.Tuple):
            return None
        small = (
            len(loop.iter.elts) <= MOST_CHARACTERS
            and len(list(islice(ast.walk(parts.elt), LARGEST_FORM))) < LARGEST_FORM
        )
        if self._in_loop or not small:
            return None
        numbers = [self.fold(number, depth) for number in loop.iter.elts]
        self._in_loop, spelled = True, []
        for number in numbers:
            self._known[loop.target.id] = number
            spelled.append(self.fold(parts.elt, depth))
        self._in_loop = False
        del self._known[loop.target.id]
        texts = [part for part in spelled if isinstance(part, str)]
        return between.join(texts) if texts and len(texts) == len(spelled) else None


def _computed(operator: ast.operator, left: Any, right: Any) -> Constant | None:
    match operator, left, right:
        case (ast.Add(), str(), str()) | (ast.Add(), bytes(), bytes()) | (ast.Add(), int(), int()):
            return left + right  # type: ignore[no-any-return]
        case (ast.Mult(), str() | bytes(), int()) if len(left) * right <= LONGEST:
            return left * right
        case (ast.Sub(), int(), int()):
            return left - right
        case (ast.BitXor(), int(), int()):
            return left ^ right
    return None
