// A model of the circuit with its UART, driven at the pins: bytes in, cycles, bytes out. Called through ctypes.

#include <cstdint>
#include <deque>

#include "Vlinked.h"
#include "verilated.h"

namespace {

struct Model {
    VerilatedContext context;
    Vlinked top;
    const unsigned bit;          // cycles of a bit
    std::deque<uint8_t> sending;
    unsigned out = 0, out_left = 0;      // the bits on their way to rx, and the cycles they still take
    unsigned in = 0, in_cycle = 0;       // the bits from tx so far, and the cycles since the start bit's edge
    bool receiving = false;

    explicit Model(unsigned bit) : top(&context), bit(bit) {
        top.clk = 0;
        top.rx = 1;
        top.rst = 1;
        for (int n = 0; n < 4; ++n) edge();
        top.rst = 0;
    }

    ~Model() {
        enter();
        top.final();
    }

    // As in harness.cpp: the thread's context may be that of a model that has been deleted.
    void enter() { Verilated::threadContextp(&context); }

    void edge() {
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
    }
};

}  // namespace

extern "C" {

void* em_open(unsigned bit) { return new Model(bit); }

void em_close(void* handle) {
    delete static_cast<Model*>(handle);
    Verilated::threadContextp(nullptr);
}

// Sends the n bytes of `data` after those of earlier calls, runs for `cycles`, and returns how many bytes came, at most
// `room`, in `received`: it returns early when there is no more room.
uint64_t em_run(void* handle, const uint8_t* data, uint64_t n, uint8_t* received, uint64_t room, uint64_t cycles) {
    Model& m = *static_cast<Model*>(handle);
    m.enter();
    m.sending.insert(m.sending.end(), data, data + n);
    uint64_t got = 0;
    for (uint64_t c = 0; c < cycles && got < room; ++c) {
        if (m.out_left == 0 && !m.sending.empty()) {
            m.out = 0x200u | m.sending.front() << 1;
            m.out_left = 10 * m.bit;
            m.sending.pop_front();
        }
        m.top.rx = 1;
        if (m.out_left != 0) {
            m.top.rx = m.out >> ((10 * m.bit - m.out_left) / m.bit) & 1;
            --m.out_left;
        }
        m.edge();
        if (!m.receiving) {
            if (!m.top.tx) {
                m.receiving = true;
                m.in_cycle = 0;
                m.in = 0;
            }
            continue;
        }
        ++m.in_cycle;
        if (m.in_cycle % m.bit == m.bit / 2) {
            const unsigned at = m.in_cycle / m.bit;
            m.in |= (m.top.tx & 1u) << at;
            if (at == 9) {
                if (m.in >> 9 & 1) received[got++] = static_cast<uint8_t>(m.in >> 1);
                m.receiving = false;
            }
        }
    }
    return got;
}

}  // extern "C"
