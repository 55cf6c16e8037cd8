"""Identifiers of Verilog out of the names of a circuit's source."""

from __future__ import annotations

import re

# Words of IEEE 1364-2005 and IEEE 1800-2017 that a circuit's source might use as names, reserved in one of them.
_KEYWORDS = frozenset(re.findall(r"\w+", """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge else
end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule endpackage
endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect export extends
extern final first_match for force foreach forever fork forkjoin function generate genvar global highz0 highz1 if iff
ifnone ignore_bins illegal_bins implements implies import incdir include initial inout input inside instance int integer
interconnect interface intersect join join_any join_none large let liblist library local localparam logic longint
macromodule matches medium modport module nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1
null or output package packed parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown
pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg
reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until
s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify specparam static string
strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout time
timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned
until until_with untyped use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard wire
with within wor xnor xor
"""))
# Words of C++20 that are not among them: simulators that compile Verilog to C++, as Verilator does, rename such signals
# and warn.
_CPP_KEYWORDS = frozenset(re.findall(r"\w+", """
alignas alignof and_eq asm auto bitand bitor bool catch char char8_t char16_t char32_t co_await co_return co_yield compl
concept const_cast consteval constexpr constinit decltype delete double dynamic_cast explicit false float friend goto
inline long mutable namespace noexcept not_eq nullptr operator or_eq private public register reinterpret_cast requires
short sizeof static_assert static_cast switch template thread_local throw true try typeid typename using volatile
wchar_t xor_eq
"""))


def is_anonymous(name: str) -> bool:
    """True if the RTLIL ``name`` was made by a tool: nobody wrote it in a source."""
    return name.startswith(("$", "\\$", "\\port$"))


def is_keyword(name: str) -> bool:
    """True if ``name`` is a reserved word of Verilog, SystemVerilog or C++."""
    return name in _KEYWORDS or name in _CPP_KEYWORDS


def is_plain(name: str) -> bool:
    """True if the RTLIL ``name`` is one from the source, without a number that makes it unique."""
    return not is_anonymous(name) and "$" not in name


def stem(name: str) -> str:
    """A Verilog identifier for the RTLIL ``name``, without the number that makes it unique; "" if it is anonymous."""
    if is_anonymous(name):
        return ""
    text = re.sub(r"\$\d+", "", name.lstrip("\\"))
    text = re.sub(r"[^A-Za-z0-9_]+", "_", text).rstrip("_") or "x"
    if text[0].isdigit():
        text = f"n{text}"
    return f"{text}_" if is_keyword(text) else text


class Names:
    """Gives out the identifiers of a module, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    @property
    def taken(self) -> frozenset[str]:
        """The identifiers that were given out."""
        return frozenset(self._taken)

    def take(self, wanted: str) -> str:
        """``wanted``, or if it is taken, ``wanted`` with the first free number from 2 on."""
        name, number = wanted, self._next.get(wanted, 2)
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._next[wanted] = number
        self._taken.add(name)
        return name
