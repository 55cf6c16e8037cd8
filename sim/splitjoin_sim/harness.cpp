// The compiled model behind a batch interface: push many records, run, pop many items.
//
// Compiled together with what Verilator generates for the top module "splitjoin"; IN_WORDS and OUT_WORDS are the
// widths of a record and of the output in 32-bit words, and SOURCES is the number of records beside each other at the
// input. All functions have C linkage and are called through ctypes.

#include <cstdint>
#include <cstring>

#include "Vsplitjoin.h"
#include "verilated.h"

namespace {

// xorshift64*: the stalls of a run are a pure function of its seed.
struct Random {
    uint64_t state;
    uint32_t next() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return static_cast<uint32_t>((state * 0x2545F4914F6CDD1DULL) >> 32);
    }
};

struct Model {
    VerilatedContext context;
    Vsplitjoin top;
    uint64_t cycle = 0;
    uint64_t quiet = 0;  // cycles since the last hand-over, across pauses of run()
    Random random;
    uint32_t stall_in, stall_out;  // of 2^32, the share of cycles in which the port stalls
    double pace;                   // records that come in a cycle; 0 for no limit
    uint32_t offering = 0;         // the sources that offer a record: a stream never takes back an offer

    Model(uint64_t seed, uint32_t in, uint32_t out, double records_a_cycle)
        : top(&context),
          random{seed * 2 + 0x9E3779B97F4A7C15ULL},
          stall_in(in),
          stall_out(out),
          pace(records_a_cycle) {
        random.state |= 1;
        top.clk = 0;
        top.rst = 1;
        top.i___05Fvalid = 0;
        top.o___05Fready = 0;
        top.w_stb = 0;
        top.addr = 0;
        top.w_data = 0;
        for (int n = 0; n < 4; ++n) edge();
        top.rst = 0;
        edge();  // the model has it in a register
        cycle = 0;
    }

    ~Model() {
        enter();
        top.final();
    }

    // Verilator's run-time library keeps a pointer to a thread's context: by default to the one made last, which may
    // belong to a model that has been deleted since.
    void enter() { Verilated::threadContextp(&context); }

    void edge() {
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        ++cycle;
    }

    bool stalls(uint32_t share) { return share != 0 && random.next() < share; }

    // The record of this number has come, however many wait before the input, where the first came in cycle `start`.
    bool has_come(uint64_t number, uint64_t start) {
        return pace == 0 || static_cast<double>(cycle - start + 1) * pace >= static_cast<double>(number + 1);
    }
};

}  // namespace

extern "C" {

// Why run() returned.
enum { RUN_SENT = 0, RUN_END = 1, RUN_FULL = 2, RUN_STUCK = 3, RUN_PAUSED = 4 };

void* sj_open(uint64_t seed, uint32_t stall_in, uint32_t stall_out, double pace) {
    return new Model(seed, stall_in, stall_out, pace);
}

void sj_close(void* handle) {
    delete static_cast<Model*>(handle);
    Verilated::threadContextp(nullptr);
}

uint32_t sj_read(void* handle, uint32_t address) {
    Model& m = *static_cast<Model*>(handle);
    m.enter();
    m.top.addr = address;
    for (int n = 0; n < 3; ++n) m.edge();
    return m.top.r_data;
}

void sj_write(void* handle, uint32_t address, uint32_t word) {
    Model& m = *static_cast<Model*>(handle);
    m.enter();
    m.top.addr = address;
    m.top.w_data = word;
    m.top.w_stb = 1;
    m.edge();
    m.top.w_stb = 0;
    m.top.eval();
}

uint64_t sj_cycle(void* handle) { return static_cast<Model*>(handle)->cycle; }

// Send the records, those of source p from next[p] up to end[p], and receive into items[0 .. room), with the cycle of
// each hand-over; next[p] counts on. With a pace, the record with number[n] comes so much later than cycle `start`.
// Returns when all records are sent (unless until_end), when an END item (kind 2) came, when there is no more room,
// after `pause` cycles so that the caller can show progress or be interrupted, or when nothing moved for `patience`
// cycles.
int sj_run(void* handle, const uint32_t* records, const uint64_t* number, uint64_t start, const uint64_t* end,
           uint64_t* next, uint64_t* sent_cycle, uint32_t* items, uint64_t room, uint64_t* received,
           uint64_t* received_cycle, int until_end, uint64_t pause, uint64_t patience) {
    Model& m = *static_cast<Model*>(handle);
    m.enter();
    uint64_t left = 0, r = 0;
    for (int p = 0; p < SOURCES; ++p) left += end[p] - next[p];
    const uint64_t until = m.cycle + pause;
    int why = RUN_PAUSED;
    while (true) {
        if (left == 0 && !until_end) { why = RUN_SENT; break; }
        if (r == room) { why = RUN_FULL; break; }
        if (m.cycle >= until) { why = RUN_PAUSED; break; }
        if (m.quiet >= patience) { why = RUN_STUCK; break; }

        for (int p = 0; p < SOURCES; ++p) {
            if (m.offering >> p & 1 || next[p] == end[p] || !m.has_come(number[next[p]], start)) continue;
            if (m.stalls(m.stall_in)) continue;
            m.offering |= 1u << p;
            std::memcpy(m.top.i___05Fpayload.data() + p * IN_WORDS, records + next[p] * IN_WORDS,
                        IN_WORDS * sizeof(uint32_t));
        }
        m.top.i___05Fvalid = m.offering;
        m.top.o___05Fready = !m.stalls(m.stall_out);
        m.top.eval();
        ++m.quiet;
        bool end = false;
        if (m.top.o___05Fvalid && m.top.o___05Fready) {
            const uint32_t* payload = m.top.o___05Fpayload.data();
            std::memcpy(items + r * OUT_WORDS, payload, OUT_WORDS * sizeof(uint32_t));
            received_cycle[r++] = m.cycle;
            end = (payload[0] & 3) == 2;
            m.quiet = 0;
        }
        for (int p = 0; p < SOURCES; ++p) {
            if (!(m.offering & m.top.i___05Fready & 1u << p)) continue;
            sent_cycle[next[p]++] = m.cycle;
            m.offering &= ~(1u << p);
            m.quiet = 0;
            --left;
        }
        m.edge();
        m.top.i___05Fvalid = 0;
        m.top.o___05Fready = 0;
        if (end) { why = RUN_END; break; }
    }
    m.top.eval();
    *received = r;
    return why;
}

}  // extern "C"
