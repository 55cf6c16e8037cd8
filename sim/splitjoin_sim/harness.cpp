// The compiled model behind a batch interface: push many records, run, pop many items.
//
// Compiled together with what Verilator generates for the top module "splitjoin"; IN_WORDS and OUT_WORDS are the
// widths of a record and of the output in 32-bit words, and SOURCES is the number of records beside each other at the
// input. With external memory, LINES are its lines, LINE_WORDS the 32-bit words of one, ADDRESS_BITS is the width of
// their numbers, and PORTS(X) is X(p) for the prefix p of each one's port; FIRST is the
// first prefix. All functions have C linkage and are called through ctypes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <queue>
#include <type_traits>
#include <vector>

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

#ifdef LINES
// The signals of a port to memory.
struct Port {
#define JOINED(prefix, name) prefix##name
#define SIGNAL(prefix, name) JOINED(prefix, name)
#define OF(name) std::remove_reference_t<decltype(Vsplitjoin::SIGNAL(FIRST, name))>*
    OF(___05Far___05Fvalid) ar_valid;
    OF(___05Far___05Fready) ar_ready;
    OF(___05Far___05Fpayload) ar;
    OF(___05Faw___05Fvalid) aw_valid;
    OF(___05Faw___05Fready) aw_ready;
    OF(___05Faw___05Fpayload) aw;
    OF(___05Fw___05Fvalid) w_valid;
    OF(___05Fw___05Fready) w_ready;
    OF(___05Fw___05Fpayload) w;
    OF(___05Fr___05Fvalid) r_valid;
    OF(___05Fr___05Fpayload) r;
    OF(___05Fb___05Fvalid) b_valid;
    OF(___05Fb___05Fpayload) b;
};
#define PORT_OF(p) Port{&top.SIGNAL(p, ___05Far___05Fvalid), &top.SIGNAL(p, ___05Far___05Fready), \
    &top.SIGNAL(p, ___05Far___05Fpayload), &top.SIGNAL(p, ___05Faw___05Fvalid), &top.SIGNAL(p, ___05Faw___05Fready), \
    &top.SIGNAL(p, ___05Faw___05Fpayload), &top.SIGNAL(p, ___05Fw___05Fvalid), &top.SIGNAL(p, ___05Fw___05Fready), \
    &top.SIGNAL(p, ___05Fw___05Fpayload), &top.SIGNAL(p, ___05Fr___05Fvalid), &top.SIGNAL(p, ___05Fr___05Fpayload), \
    &top.SIGNAL(p, ___05Fb___05Fvalid), &top.SIGNAL(p, ___05Fb___05Fpayload)},

using Line = std::array<uint32_t, LINE_WORDS>;
struct Request {
    uint64_t done, order;  // cycle in which it is done, and its number
    uint32_t id, line, strobes;
    bool write;
    Line data;
    bool operator>(const Request& other) const {
        return done != other.done ? done > other.done : order > other.order;
    }
};

// External memory at the circuit's AXI4 master, as `splitjoin_sim.memory` describes it.
struct Memory {
    Random random;
    uint64_t latency = 45, interval = 1, reorder = 0, fails = ~0ULL;
    uint32_t stall = 0;  // of 2^32
    uint64_t free = 0, served = 0;
    std::vector<Line> lines;
    Port top;
    std::priority_queue<Request, std::vector<Request>, std::greater<Request>> under_way;
    std::deque<Request> addresses, data, reads, writes;  // of writes, their two halves; requests that are done

    Memory(uint64_t seed, const Port& port) : random{seed * 2 + 0xD1B54A32D192ED03ULL}, lines(LINES), top(port) {
        for (auto& line : lines)
            for (auto& word : line) word = random.next();  // what memory holds after power-up
    }

    bool stalls() { return stall != 0 && random.next() < stall; }

    void begin(uint64_t cycle, Request request) {
        free = std::max(free, cycle) + interval;
        request.done = std::max(cycle + latency, free) + (reorder ? random.next() % (reorder + 1) : 0);
        request.order = served++;
        under_way.push(request);
    }

    // Takes what the circuit offers in this cycle, before the clock's edge.
    void sample(uint64_t cycle) {
        if (*top.ar_valid && *top.ar_ready) begin(cycle, address(*top.ar));
        if (*top.aw_valid && *top.aw_ready) addresses.push_back(address(*top.aw));
        if (*top.w_valid && *top.w_ready) {
            Request part{};
            std::memcpy(part.data.data(), top.w->data(), sizeof(Line));
            part.strobes = top.w->data()[LINE_WORDS];
            data.push_back(part);
        }
        if (!addresses.empty() && !data.empty()) {
            Request whole = data.front();
            whole.id = addresses.front().id, whole.line = addresses.front().line, whole.write = true;
            begin(cycle, whole);
            addresses.pop_front(), data.pop_front();
        }
    }

    // Offers the next answers, behind the clock's edge.
    void drive(uint64_t cycle) {
        for (; !under_way.empty() && under_way.top().done <= cycle; under_way.pop()) {
            Request due = under_way.top();
            if (due.order != fails && due.line < LINES) {
                auto& line = lines[due.line];
                if (due.write) {
                    auto* bytes = reinterpret_cast<uint8_t*>(line.data());
                    const auto* given = reinterpret_cast<const uint8_t*>(due.data.data());
                    for (size_t n = 0; n < sizeof(Line); ++n) bytes[n] = due.strobes >> n & 1 ? given[n] : bytes[n];
                } else {
                    due.data = line;
                }
            }
            (due.write ? writes : reads).push_back(due);
        }
        *top.r_valid = *top.b_valid = 0;  // the circuit takes answers at once
        if (!reads.empty() && !stalls()) {
            const Request due = next(reads);
            std::memcpy(top.r->data(), due.data.data(), sizeof(Line));
            top.r->data()[LINE_WORDS] = response(due) | due.id << 2;
            *top.r_valid = 1;
        }
        if (!writes.empty() && !stalls()) {
            const Request due = next(writes);
            *top.b = response(due) | due.id << 2;
            *top.b_valid = 1;
        }
        *top.ar_ready = !stalls();
        *top.aw_ready = !stalls();
        *top.w_ready = !stalls();
    }

    static Request address(uint64_t payload) {
        Request request{};
        request.line = payload & ((1ULL << ADDRESS_BITS) - 1);
        request.id = payload >> ADDRESS_BITS;
        return request;
    }

    uint32_t response(const Request& request) const {  // SLVERR, or DECERR beyond the end
        return request.line >= LINES ? 3 : request.order == fails ? 2 : 0;
    }

    Request next(std::deque<Request>& from) {
        const auto at = from.begin() + (reorder ? random.next() % from.size() : 0);
        const Request found = *at;
        from.erase(at);
        return found;
    }
};
#endif

struct Model {
    VerilatedContext context;
    Vsplitjoin top;
    uint64_t cycle = 0;
    uint64_t quiet = 0;  // cycles since the last hand-over, across pauses of run()
    Random random;
    uint32_t stall_in, stall_out;  // of 2^32, the share of cycles in which the port stalls
    double pace;                   // records that come in a cycle; 0 for no limit
#ifdef LINES
    std::vector<Memory> memories;
#endif
    uint32_t offering = 0;         // the sources that offer a record: a stream never takes back an offer

    Model(uint64_t seed, uint32_t in, uint32_t out, double records_a_cycle)
        : top(&context),
          random{seed * 2 + 0x9E3779B97F4A7C15ULL},
          stall_in(in),
          stall_out(out),
          pace(records_a_cycle) {
#ifdef LINES
        for (const Port& port : {PORTS(PORT_OF)}) memories.emplace_back(seed + memories.size(), port);
#endif
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
#ifdef LINES
        top.eval();  // what memory drives since the edge before
        for (auto& memory : memories) memory.sample(cycle);
#endif
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        ++cycle;
#ifdef LINES
        if (!top.rst)
            for (auto& memory : memories) memory.drive(cycle);
#endif
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

#ifdef LINES
void sj_memory(void* handle, uint64_t latency, uint64_t interval, uint64_t reorder, uint32_t stall, uint64_t fails) {
    for (auto& memory : static_cast<Model*>(handle)->memories) {
        memory.latency = latency, memory.interval = interval, memory.reorder = reorder, memory.stall = stall;
        memory.fails = fails;
    }
}
#endif

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
