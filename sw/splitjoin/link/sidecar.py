"""The sidecar of a built circuit: a JSON file that tells drivers the circuit's parameters, ABI, clock and baud rate."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from splitjoin.base.errors import DeviceError, InputError, SplitJoinError
from splitjoin.base.json_text import parsed_json
from splitjoin.circuit.parameters import CircuitParameters, offered
from splitjoin.circuit.wire import Configuration
from splitjoin.lang.aggregate import Aggregate, parse_aggregates
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Column

#: The value of the field ``format``.
FORMAT = "splitjoin design 1"
#: Kinds of join of which a circuit may give only the pairs that decide.
_DECIDED_KINDS = ("semi", "anti", "asof", "asof_left")
_NAMES = tuple(found.name for found, _ in offered(CircuitParameters))


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """Facts about a built circuit that a driver needs.

    Attributes:
        parameters: Options of `CircuitParameters`, by name.
        abi: The ABI hash of the configuration, 64 bits.
        board: The board's name.
        clock_hz, baud: Frequency of the circuit's clock and rate of its UART, in Hz.
        link: ``uart``, or ``ft232h``, for which ``baud`` means nothing.
        pack: Items are packed on the link; for emulators, as the circuit tells drivers itself.
        aggregates: The aggregates that the circuit folds, by name, as the user wrote them; empty if it folds none.
        query: The options of the query that it was built for, by name; for people, and for messages.
        pins: The FPGA's pins of clock and link, likewise.
    """

    parameters: dict[str, Any]
    abi: int
    board: str
    clock_hz: int
    baud: int
    link: str = "uart"
    pack: bool = False
    aggregates: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    pins: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parameters: CircuitParameters, config: Configuration, *, board: str, clock_hz: int,
           baud: int, link: str = "uart", pack: bool = False, aggregates: Sequence[Aggregate] = (),
           query: dict[str, str] | None = None, pins: dict[str, str] | None = None) -> Sidecar:
        """The sidecar of the circuit with ``config``, made from ``parameters``. ``aggregates``: those of the query that
        the circuit is built for; the sidecar lists them if the circuit folds.
        """
        named = {name: getattr(parameters, name) for name in _NAMES}
        return cls(parameters=named, abi=config.abi_hash, board=board, clock_hz=clock_hz, baud=baud,
                   link=link, pack=pack, aggregates={a.name: a.text for a in aggregates} if config.folds else {},
                   query=query or {}, pins=pins or {})

    def check(self, path: str | Path, query: Query, config: Configuration) -> None:
        """Raise `DeviceError` unless the circuit of the sidecar ``path`` is that of ``config``, made for ``query``.

        The message names what differs: the columns whose types are not those that the circuit was built for, or what it
        was built to fold.
        """
        if config.abi_hash != self.abi:
            others = self._other_columns(query)
            cure = f"; {', '.join(others)}: give tables with these types, or" if others else self._other_folds(query)
            raise DeviceError(f"the design {path} must be built for this query, which needs ABI "
                              f"{config.abi_hash:016x}, but has ABI {self.abi:016x}{cure} build the circuit for this "
                              f"query")

    def built_aggregates(self, query: Query) -> tuple[Aggregate, ...]:
        """The aggregates that the circuit folds, parsed over the columns of ``query``.

        Empty for classes, whose definition no sidecar has; a query must then have the same aggregates in the same
        order. A class may have the name of a built-in aggregate, so the query's are asked before texts are parsed.
        """
        if not (self.aggregates and query.aggregates) or not all(a.definition.named for a in query.aggregates):
            return ()
        try:
            return parse_aggregates(self.aggregates, query.r, query.s)
        except SplitJoinError:
            return ()

    def _other_columns(self, query: Query) -> list[str]:
        """The columns of ``query`` that differ from those that the circuit was built for, in words."""
        problems = []
        for schema in (query.r, query.s):
            built = self.query.get(f"schema_{schema.side}", "")
            listed = f", {built}, "
            problems += [f"it was built for stream {schema.side} with {built}, not with {column}"
                         for column in map(_described, schema.columns)
                         if f", {column.split(':')[0]}:" in listed and f", {column}, " not in listed]
        return problems

    def _other_folds(self, query: Query) -> str:
        """The end of the refusal of ``query``: the aggregates or the kind of join that the circuit was built for, if
        the query asks for others, and what to ask for. Only a semicolon if these do not differ.
        """
        how = self.query.get("how", "inner")
        if not self.aggregates:
            few = how if how in _DECIDED_KINDS else ""
            return f"; it gives the pairs that decide a join of kind {few!r}: ask for this kind, or" if few else ";"
        built = " and ".join(f"{name} = {text}" for name, text in self.aggregates.items())
        if not query.aggregates:
            return f"; it folds {built}, and gives no pairs: ask for some of these aggregates, or"
        known = {(a.function, a.args) for a in self.built_aggregates(query)}
        other = [f"{a.name} = {a.text}" for a in query.aggregates if (a.function, a.args) not in known]
        return f"; it folds {built}, not {' and '.join(other)}: ask for some of these aggregates, or" if other else ";"

    def write(self, path: str | Path) -> None:
        """Write the file ``path``."""
        text = json.dumps({"format": FORMAT, **asdict(self), "abi": f"{self.abi:016x}"}, indent=2)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Sidecar:
        """The sidecar in the file ``path``. Raises `InputError` if it is missing or not a sidecar."""
        try:
            content = parsed_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"a design must be a readable JSON file that `splitjoin build` wrote, but {path} is not: "
                             f"{error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(f"the design {path} must have the format {FORMAT!r}; build the circuit again with this "
                             f"release")
        wrong = [name for name, good in (
            ("parameters", isinstance(content.get("parameters"), dict) and set(content["parameters"]) <= set(_NAMES)),
            ("abi", isinstance(content.get("abi"), str) and re.fullmatch("[0-9a-f]{16}", content["abi"])),
            ("board", isinstance(content.get("board"), str)),
            *((name, type(content.get(name)) is int and content[name] > 0) for name in ("clock_hz", "baud")),
            ("link", content.get("link", "uart") in ("uart", "ft232h")),
            ("pack", isinstance(content.get("pack", False), bool)),
            ("aggregates", _is_texts(content.get("aggregates", {}))),
            *((name, isinstance(content.get(name, {}), dict)) for name in ("query", "pins")),
        ) if not good]
        if wrong:
            raise InputError(f"the design {path} must have valid fields {', '.join(wrong)}; do not edit it, build the "
                             f"circuit again")
        return cls(parameters=content["parameters"], abi=int(content["abi"], 16), board=content["board"],
                   clock_hz=content["clock_hz"], baud=content["baud"], link=content.get("link", "uart"),
                   pack=content.get("pack", False),
                   aggregates=content.get("aggregates", {}), query=content.get("query", {}),
                   pins=content.get("pins", {}))


def _described(column: Column) -> str:
    """A column as the texts of schemas have it."""
    span = "" if column.range is None else f" {column.range[0]}..{column.range[1]}"
    return f"{column.name}:{column.type}{'?' if column.nullable else ''}{span}"


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)
