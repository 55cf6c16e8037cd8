"""Text of Verilog expressions. Each has exactly the width of the value that it stands for, so none is extended."""

from __future__ import annotations

from dataclasses import dataclass

from .rtlil import Chunk

_BINARY = {"$add": "+", "$sub": "-", "$mul": "*", "$and": "&", "$or": "|", "$xor": "^", "$eq": "==", "$ne": "!=",
           "$lt": "<", "$le": "<=", "$gt": ">", "$ge": ">=", "$shl": "<<", "$shr": ">>", "$shift": ">>", "$sshr": ">>>",
           "$divfloor": "/", "$modfloor": "%"}
_ASSOCIATIVE = ("&", "|", "^")
_UNARY = {"$neg": "-", "$reduce_and": "&", "$reduce_or": "|", "$reduce_xor": "^", "$reduce_bool": "|"}


@dataclass(frozen=True)
class Expression:
    """``text`` with ``operator``, the outermost one: "" for a name, a literal or a concatenation."""

    text: str
    operator: str = ""

    def within(self, operator: str) -> str:
        """The text as an operand of ``operator``, "unary" for any that stands before its operand.

        Such an operator takes no other one behind it: Icarus Verilog refuses ``!!a``, and ``^~a`` is an XNOR.
        """
        plain = not self.operator or (self.operator in ("!", "~") and operator != "unary") or (
            self.operator == operator and operator in _ASSOCIATIVE)
        return self.text if plain else f"({self.text})"


def literal(bits: str) -> Expression:
    """A constant, high bit first."""
    if set(bits) - {"0", "1"}:
        return Expression(f"{len(bits)}'b{bits}")
    value, width = int(bits, 2), len(bits)
    if width == 1:
        return Expression(f"1'b{value}")
    return Expression(f"{width}'d{value}" if value < 1000 else f"{width}'h{value:x}")


def concatenation(parts: list[Expression]) -> Expression:
    """``parts``, least significant first, side by side."""
    if len(parts) == 1:
        return parts[0]
    runs: list[tuple[str, int]] = []
    for part in reversed(parts):
        if runs and runs[-1][0] == part.text:
            runs[-1] = part.text, runs[-1][1] + 1
        else:
            runs.append((part.text, 1))
    texts = [text if times == 1 else f"{{{times}{{{text}}}}}" for text, times in runs]
    return Expression(texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}")


def complement(of: Expression, sign: str = "!") -> Expression:
    """``of`` inverted, by ``sign``: "!" for one bit, "~" for several."""
    return Expression(of.text[1:]) if of.operator == sign else Expression(f"{sign}{of.within('unary')}", sign)


def operation(kind: str, operands: list[Expression], widths: list[int], signed: bool) -> Expression:
    """The result of the operator ``kind``; ``widths`` are those of the operands."""
    if kind == "$mux":
        return ternary(*operands)
    if kind == "$not":
        return complement(operands[0], "!" if widths[0] == 1 else "~")
    if kind in _UNARY:
        if widths[0] <= 1 and kind != "$neg":
            return operands[0]
        return Expression(f"{_UNARY[kind]}{operands[0].within('unary')}", "unary")
    sign = _BINARY[kind]
    left, right = operands
    if kind in ("$eq", "$ne") and right.text in ("1'b0", "1'b1"):
        return left if (kind == "$eq") == (right.text == "1'b1") else complement(left)
    if signed:
        left, right = (Expression(f"$signed({left.text})"),
                       right if kind == "$sshr" else Expression(f"$signed({right.text})"))
    return Expression(f"{left.within(sign)} {sign} {right.within(sign)}", sign)


def ternary(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """``then`` if ``condition`` holds."""
    if (then.text, otherwise.text) == ("1'b1", "1'b0"):
        return condition
    test = f"({condition.text})" if condition.operator == "?" else condition.text
    first = f"({then.text})" if then.operator == "?" else then.text
    return Expression(f"{test} ? {first} : {otherwise.text}", "?")


def part(name: str, chunk: Chunk, width: int) -> Expression:
    """The bits ``chunk`` of a wire of ``width`` bits with the identifier ``name``."""
    if chunk.width == width:
        return Expression(name)
    if chunk.width == 1:
        return Expression(f"{name}[{chunk.low}]")
    return Expression(f"{name}[{chunk.low + chunk.width - 1}:{chunk.low}]")
