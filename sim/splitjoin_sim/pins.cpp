// A model of a circuit with its UART, driven at the pins: bytes in, cycles, bytes out. Called through ctypes. The build
// defines the names of the ports (PIN_CLK, PIN_RX, PIN_TX, PIN_RESET) and the level of the reset (RESET_ACTIVE).

#include <cstdint>
#include <deque>

#include "Vlinked.h"
#include "verilated.h"

namespace {

struct Model {
    VerilatedContext context;
    Vlinked top;
    const double bit;                // cycles of a bit
    std::deque<uint8_t> sending;
    unsigned out = 0;                // the bits on their way to rx
    double out_at = 10;              // the bits of them that have been sent; 10: all
    unsigned in = 0, in_bits = 0;    // the bits from tx so far
    double in_at = 0;                // the bits since the start bit's edge
    bool receiving = false;

    explicit Model(double bit) : top(&context), bit(bit) {
        top.PIN_CLK = 0;
        top.PIN_RX = 1;
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

void* em_open(double bit) { return new Model(bit); }

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
    const double step = 1 / m.bit;
    for (uint64_t c = 0; c < cycles && got < room; ++c) {
        if (m.out_at >= 10 && !m.sending.empty()) {
            m.out = 0x200u | m.sending.front() << 1;
            m.out_at = 0;
            m.sending.pop_front();
        }
        m.top.PIN_RX = 1;
        if (m.out_at < 10) {
            m.top.PIN_RX = m.out >> static_cast<unsigned>(m.out_at) & 1;
            m.out_at += step;
        }
        m.edge();
        if (!m.receiving) {
            if (!m.top.PIN_TX) {
                m.receiving = true;
                m.in_at = m.in = m.in_bits = 0;
            }
            continue;
        }
        m.in_at += step;
        if (m.in_at >= m.in_bits + 0.5) {  // the middle of the next bit
            m.in |= (m.top.PIN_TX & 1u) << m.in_bits;
            if (++m.in_bits == 10) {
                if (m.in >> 9 & 1) received[got++] = static_cast<uint8_t>(m.in >> 1);
                m.receiving = false;
            }
        }
    }
    return got;
}

}  // extern "C"
