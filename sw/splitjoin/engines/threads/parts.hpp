// Parts that all architectures share: messages, stored tuples, comparison, queues of a session, and the merger.
#pragma once

#include <time.h>

#include "scalegate.hpp"

namespace splitjoin {

// Words of a message: its kind; a row id; the event time; the tuple's number in arrival order; the first row of the other
// stream that it sees, which some architectures replace; then of each test its key, lows of all, and highs of all.
constexpr int64_t of_kind = 0, of_row = 1, of_time = 2, of_place = 3, of_start = 4, head = 5;
// Kinds of messages: tuples of R and S; the end of input, for the feeder; what expires of R and S; an acknowledgement.
constexpr int64_t tuple_r = 0, tuple_s = 1, at_end = 2, expire_r = 3, expire_s = 4, acknowledge = 5;
// Kinds of results: pairs, stars of a probe or a group, and stars of a slice with more to come of its probe.
constexpr int64_t of_pair = 0, of_star = 1, of_slice = 2;
constexpr int64_t result_words = 4, item_words = 5;  // kind, side, r, s; and the time at which it left, in nanoseconds

inline int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// Tuples of one stream, the oldest first, as columns of the words of messages: a ring that its only writer lets grow.
struct Segment {
    int64_t columns = 0, size = 0, first = 0, end = 0;
    int64_t *data = nullptr;

    explicit Segment(int64_t of_columns) : columns(of_columns) {}
    ~Segment() { free(data); }
    Segment(const Segment &) = delete;
    Segment &operator=(const Segment &) = delete;

    int64_t *column(int64_t n) const { return data + n * size; }
    int64_t at(int64_t n, int64_t position) const { return column(n)[position & (size - 1)]; }
    int64_t length() const { return end - first; }
    // Returns false if there is no more memory.
    bool push(const int64_t *message) {
        if (length() == size && !grow()) return false;
        for (int64_t n = 0; n < columns; n++) column(n)[end & (size - 1)] = message[n];
        end++;
        return true;
    }
    bool grow() {
        const int64_t larger = size ? 2 * size : block;
        int64_t *moved = static_cast<int64_t *>(aligned(larger * columns));
        if (!moved) return false;
        for (int64_t n = 0; n < columns; n++)
            for (int64_t p = first; p < end; p++) moved[n * larger + (p & (larger - 1))] = at(n, p);
        free(data);
        data = moved, size = larger;
        return true;
    }
    static void *aligned(int64_t words) { return malloc(word(words) * sizeof(int64_t)); }
    void write(int64_t position, int64_t *message) const {
        for (int64_t n = 0; n < columns; n++) message[n] = at(n, position);
    }
};

// Ways of tuples to the cores: all get all; or also which part of the windows is theirs; or they go from core to core, or through
// gates.
constexpr int64_t broadcast = 0, parts = 1, chain = 2, gates = 3;

// What the threads of a session share, and what the one that feeds them and merges their results keeps.
struct Session {
    int64_t cores, tests, width;
    int64_t every, slice;  // probes between stars; comparisons of a sub-window between stars within a probe; 0 for none
    bool total;            // pairs are sorted
    int64_t block, threshold;  // of a cascade
    int64_t rows[2];       // of both windows: the most tuples
    uint64_t lengths[2];   // and the longest time since
    bool timed[2];
    Queue input[2];        // of all cores, or of the leftmost and the rightmost one
    Queue *of_cores[3];    // results, and of a chain those to the next core at the right and at the left
    Rows junctions;
    int64_t *shared;       // `apart` words each: whether to stop, whether memory is short, and of chains
    Segment windows[2];    // of CellJoin
    ScaleGate gate_in, gate_out;      // of ScaleJoin
    // Of its feeder: places that R's and S's sources have reached, and the last one that both are behind; results that end
    // probes, and probes since a star.
    int64_t latest[2], reached, stars, open[2];
    int64_t kind, places;  // the way of tuples, and of queues to the cores
    int64_t counts[2], expired[2];  // of R and S: rows fed; and those that no later probe sees, as the feeder has said

    Queue *results() const { return of_cores[0]; }
    Queue *right() const { return of_cores[1]; }
    Queue *left() const { return of_cores[2]; }
    int64_t *word_of(int64_t n) const { return shared + n * apart; }
    bool stops() const { return acquire(word_of(0)) != 0; }
    void fail() const { release(word_of(1), int64_t{1}); }
    // Tuples of a stream that have left a chain.
    int64_t *gone(int64_t side) const { return word_of(2 + side); }
    // Words of a core of a chain: tuples of R and S that have left it, and whether it lacks one that must expire.
    int64_t *left_of(int64_t core, int64_t side) const { return word_of(4 + 4 * core + side); }
    int64_t *wants_of(int64_t core, int64_t side) const { return word_of(6 + 4 * core + side); }
    // Nanoseconds for which a core has waited until the merger took results.
    int64_t *waited_of(int64_t core) const { return left_of(core, 0) + 1; }

    // Give a result to the merger. Returns false if the session stops.
    bool give(int64_t core, int64_t kind, int64_t side, int64_t r, int64_t s) const {
        int64_t *record = results()[core].room();
        if (!record) {
            const int64_t began = now();
            for (int64_t looks = 1; !(record = results()[core].room()); looks++) {
                if (stops()) return false;
                rest(looks);
            }
            release(waited_of(core), *waited_of(core) + now() - began);
        }
        record[0] = kind, record[1] = side, record[2] = r, record[3] = s;
        results()[core].publish();
        return true;
    }
    // As `room` of a queue, for as long as it takes; null if the session stops.
    const int64_t *next(const Queue &queue, int64_t reader) const {
        const int64_t *message;
        for (int64_t looks = 1; !(message = queue.front(reader)); looks++) {
            if (stops()) return nullptr;
            rest(looks);
        }
        return message;
    }
};

// Compares probes with stored tuples, by the tests of the product's own loops.
struct Matcher {
    Memory<Test> of;
    Condition condition;
    bool copies;             // parts of blocks, as another thread writes beside them
    Memory<int64_t> copied;  // of such a part, 64 keys of each test

    explicit Matcher(const Session &session)
        : of(session.tests), condition({reinterpret_cast<const int64_t *>(of.data), 4 * session.tests}, session.junctions),
          copies(session.kind == parts), copied(copies ? block * session.tests : 0) {}
    explicit operator bool() const { return of.data && copied.data && static_cast<bool>(condition); }

    // Call `found` with the position of each tuple from `from` to before `to` that `message` meets, until it gives false.
    // Returns false if it did.
    template <typename F>
    bool scan(const Segment &stored, int64_t from, int64_t to, const int64_t *message, F found) const {
        if (from >= to) return true;
        const int64_t tests = condition.tests.size;
        for (int64_t n = 0; n < tests; n++)
            of[n] = {stored.column(head + n), message + head + tests + n, message + head + 2 * tests + n, 8};
        if (!condition.begin(0)) return true;
        for (int64_t x = from / block * block; x < to; x += block) {
            const int64_t first = greatest_of(from - x, int64_t{0}), behind = least_of(to - x, block);
            int64_t at = x & (stored.size - 1);
            if (copies) {
                const bool is_part = behind - first < block;
                for (int64_t n = 0; n < tests; n++) {
                    const int64_t *keys = stored.column(head + n);
                    int64_t *some = copied.data + n * block;
                    for (int64_t i = first; is_part && i < behind; i++) some[i] = keys[at + i];
                    of[n].of_keys = is_part ? some : keys;
                }
                if (is_part) at = 0;
            }
            uint64_t bits = condition.mask(at) & bits_of(first, behind - 1);
            for (; bits; bits &= bits - 1)
                if (!found(x + static_cast<int64_t>(__builtin_ctzll(bits)))) return false;
        }
        return true;
    }
};

// Write results of all cores to `items` from word `at` on, as many as there are and fit. Returns the word behind the last.
//
// A star is written when all cores have given theirs; with `total`, pairs between two stars are sorted by the row that
// was stored. A core with fewer slices than others waits for these.
inline int64_t merge(const Session &session, RowsOut items, int64_t at) {
    const auto write = [&](const int64_t *result, int64_t kind) {
        for (int64_t n = 0; n < result_words; n++) items[at + n] = result[n];
        items[at] = kind;
        items[at + result_words] = now();
        at += item_words;
    };
    while (at + item_words <= items.size) {
        int64_t stars = 0, slices = 0, least = -1, row = 0;
        const int64_t before = at;
        const int64_t *star = nullptr;
        for (int64_t core = 0; core < session.cores; core++) {
            const Queue &queue = session.results()[core];
            const int64_t *result;
            while ((result = queue.front()) && result[0] == of_pair && at + item_words <= items.size) {
                if (session.total) {
                    const int64_t of_stored = result[3 - result[1]];
                    if (least < 0 || of_stored < row) least = core, row = of_stored;
                    break;
                }
                write(result, of_pair);
                queue.pop();
            }
            if (!result) {
                if (session.total) return at;
            } else if (result[0] != of_pair) {
                stars++, slices += result[0] == of_slice;
                star = result;
            }
        }
        if (session.total && least >= 0) {
            write(session.results()[least].front(), of_pair);
            session.results()[least].pop();
        } else if (stars == session.cores && at + item_words <= items.size) {
            write(star, of_star);
            for (int64_t core = 0; core < session.cores; core++)
                if (!slices || session.results()[core].front()[0] == of_slice) session.results()[core].pop();
        }
        if (at == before) return at;
    }
    return at;
}

}  // namespace splitjoin
