// A model of a circuit with its UART, or the FIFO of an FT232H, driven at the pins: bytes in, cycles, bytes out. Called
// through ctypes. The build defines the names of the ports: PIN_CLK; PIN_RX and PIN_TX, or FIFO; PIN_RESET with its
// level, RESET_ACTIVE.

#include <cstdint>
#include <deque>

#include "Vlinked.h"
#include "verilated.h"

namespace {

#ifdef FIFO

// The chip in its FT245 synchronous mode (FTDI, FT232H Data Sheet, section 4.4), on a clock of its own, with a kilobyte
// in each direction, which USB fills and empties at 40 MB/s, 2 bytes in 3 cycles of CLKOUT.
class Line {
public:
    // `cycles`: of the circuit's clock in one of CLKOUT.
    Line(Vlinked& top, double cycles) : top(top), step(1 / cycles) { outputs(); }

    // A cycle of the circuit's clock passes until its edge.
    void before() {
        for (at += step; at >= 1 && !broken; --at) cycle();
    }

    void after() {}

    std::deque<uint8_t> sending, received;
    const char* broken = nullptr;  // the rule that the circuit has broken: the chip does nothing from then on

private:
    static constexpr unsigned BYTES = 1024;

    void cycle() {
        const bool rd = top.fifo_rd, wr = top.fifo_wr, oe = top.fifo_oe, driven = top.fifo_driven;
        if (rd && !oe) broken = "RD# must not be low with OE# high";
        if (rd && !drove) broken = "OE# must be low for a cycle before RD#";
        if (driven && (oe || drove)) broken = "the bus must be idle for a cycle between chip and board";
        if (wr && !driven) broken = "WR# must not be low without data on the bus";
        if (wr && rd) broken = "RD# and WR# must not be low at once";
        if (top.fifo_fault) broken = "the SDRAM's times must be kept";
        if (broken) return;
        if (rd && top.fifo_rxf) {
            sending.pop_front();
            --to_board;
        }
        if (wr && top.fifo_txe) from_board.push_back(top.fifo_q);
        drove = oe;
        if (++third == 3) third = 0;
        if (third && to_board < BYTES && to_board < sending.size()) ++to_board;
        if (third && !from_board.empty()) {
            received.push_back(from_board.front());
            from_board.pop_front();
        }
        top.fifo_clkout = 1;
        top.eval();
        outputs();
    }

    void outputs() {
        top.fifo_clkout = 0;
        top.fifo_drives = drove;
        top.fifo_rxf = to_board > 0;
        top.fifo_txe = from_board.size() < BYTES;
        top.fifo_d = to_board ? sending.front() : 0;
        top.eval();
    }

    Vlinked& top;
    const double step;
    double at = 0;
    unsigned third = 0, to_board = 0;  // bytes of `sending` that the chip has
    std::deque<uint8_t> from_board;
    bool drove = false;  // OE# was low at the last edge, so the chip drives the bus
};

#else

class Line {
public:
    // `bit`: cycles of a bit.
    Line(Vlinked& top, double bit) : top(top), step(1 / bit) { top.PIN_RX = 1; }

    void before() {
        if (out_at >= 10 && !sending.empty()) {
            out = 0x200u | sending.front() << 1;
            out_at = 0;
            sending.pop_front();
        }
        top.PIN_RX = 1;
        if (out_at < 10) {
            top.PIN_RX = out >> static_cast<unsigned>(out_at) & 1;
            out_at += step;
        }
    }

    void after() {
        if (!receiving) {
            if (!top.PIN_TX) {
                receiving = true;
                in_at = in = in_bits = 0;
            }
            return;
        }
        in_at += step;
        if (in_at >= in_bits + 0.5) {  // the middle of the next bit
            in |= (top.PIN_TX & 1u) << in_bits;
            if (++in_bits == 10) {
                if (in >> 9 & 1) received.push_back(static_cast<uint8_t>(in >> 1));
                receiving = false;
            }
        }
    }

    std::deque<uint8_t> sending, received;
    const char* broken = nullptr;

private:
    Vlinked& top;
    const double step;
    unsigned out = 0;                // the bits on their way to rx
    double out_at = 10;              // the bits of them that have been sent; 10: all
    unsigned in = 0, in_bits = 0;    // the bits from tx so far
    double in_at = 0;                // the bits since the start bit's edge
    bool receiving = false;
};

#endif

struct Model {
    VerilatedContext context;
    Vlinked top;
    Line line;

    explicit Model(double cycles) : top(&context), line(top, cycles) {
        top.PIN_CLK = 0;
#ifdef PIN_RESET
        top.PIN_RESET = RESET_ACTIVE;
        for (int n = 0; n < 4; ++n) edge();
        top.PIN_RESET = !RESET_ACTIVE;
#endif
        for (int n = 0; n < 32; ++n) edge();  // the synchronizer of the reset
    }

    ~Model() {
        enter();
        top.final();
    }

    // As in harness.cpp: the thread's context may be that of a model that has been deleted.
    void enter() { Verilated::threadContextp(&context); }

    void edge() {
        top.PIN_CLK = 1;
        top.eval();
        top.PIN_CLK = 0;
        top.eval();
    }
};

}  // namespace

extern "C" {

// `cycles`: of the circuit's clock in a bit of the UART, or in a cycle of the chip.
void* em_open(double cycles) { return new Model(cycles); }

void em_close(void* handle) {
    delete static_cast<Model*>(handle);
    Verilated::threadContextp(nullptr);
}

// The rule of the chip that the circuit has broken, or null.
const char* em_broken(void* handle) { return static_cast<Model*>(handle)->line.broken; }

// Sends the n bytes of `data` after those of earlier calls, runs for `cycles`, and returns how many bytes came, at most
// `room`, in `received`: it returns early when there is no more room.
uint64_t em_run(void* handle, const uint8_t* data, uint64_t n, uint8_t* received, uint64_t room, uint64_t cycles) {
    Model& m = *static_cast<Model*>(handle);
    m.enter();
    m.line.sending.insert(m.line.sending.end(), data, data + n);
    auto& came = m.line.received;
    for (uint64_t c = 0; c < cycles && came.size() < room && !m.line.broken; ++c) {
        m.line.before();
        m.edge();
        m.line.after();
    }
    const uint64_t got = came.size() < room ? came.size() : room;
    for (uint64_t k = 0; k < got; ++k) received[k] = came[k];
    came.erase(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(got));
    return got;
}

}  // extern "C"
