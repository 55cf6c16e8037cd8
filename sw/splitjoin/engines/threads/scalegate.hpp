// ScaleGate without locks (Gulisano, Nikolakopoulos, Papatriantafilou and Tsigas, 2016, Algorithm 2): sources add records
// in the order of their own keys, and each reader gets the records of all sources in the order of keys, once these are
// ready: when no source can add one before.
#pragma once

#include "queue.hpp"

namespace splitjoin {

constexpr int64_t always = INT64_MAX, never = INT64_MIN;

// True if the word at `at` was `expected`, and is `value` now.
inline bool exchange_word(int64_t *at, int64_t expected, int64_t value) {
    SPLITJOIN_STEP();
    return __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// A skip list, into which sources link nodes by compare and swap. A reader goes along its lowest level, up to the first
// node that is the last one of its source. So the last node of a source holds readers back until the next one is linked
// and then written down as the last; each source has one from the beginning.
//
// The order is by time, then by rank; nodes of one source may be equal in both, those of several may not. A source uses
// its oldest node again when its time is before that of every reader's place, and of every node where a source begins
// its next search.
struct ScaleGate {
    static constexpr int64_t levels = 3;
    // Words of a node; references are addresses, 0 for none. Nodes of a source are also linked by age.
    static constexpr int64_t time = 0, rank = 1, source = 2, younger = 3, next = 4, record = next + levels;
    struct Source {
        int64_t *oldest, *last, *search, count;
        int64_t unused[12];
    };
    struct Reader {
        int64_t *place;
        int64_t unused[15];
    };
    int64_t sources, readers, width;
    int64_t *first, *shared;
    Source *of;
    Reader *by;

    int64_t *last_of(int64_t s) const { return shared + s * apart; }        // the address of its last node, 0 if it is closed
    int64_t *begin_of(int64_t s) const { return shared + (sources + s) * apart; }  // the time where its search begins
    int64_t *passed_by(int64_t r) const { return shared + (2 * sources + r) * apart; }  // the time of a reader's place
    static int64_t *node(int64_t address) { return reinterpret_cast<int64_t *>(address); }
    static int64_t address(const int64_t *node) { return reinterpret_cast<int64_t>(node); }
    static bool before(const int64_t *a, const int64_t *b) {
        return a[time] < b[time] || (a[time] == b[time] && a[rank] < b[rank]);
    }

    // Sources and readers from number `open_sources` and `open_readers` on are closed at first.
    bool make(int64_t words, int64_t of_sources, int64_t open_sources, int64_t of_readers, int64_t open_readers) {
        width = words, sources = of_sources, readers = of_readers;
        first = zeros<int64_t>(record), shared = zeros<int64_t>((2 * sources + readers) * apart);
        of = zeros<Source>(sources), by = zeros<Reader>(readers);
        if (!first || !shared || !of || !by) return false;
        first[time] = never;
        for (int64_t r = 0; r < readers; r++) by[r].place = first, *passed_by(r) = r < open_readers ? never : always;
        for (int64_t s = 0; s < sources; s++) {
            of[s].search = first;
            *begin_of(s) = always;
            if (s < open_sources && !start(s, never)) return false;
        }
        return true;
    }
    void free_memory() const {
        for (int64_t s = 0; of && s < sources; s++)
            for (int64_t *one = of[s].oldest; one;) {
                int64_t *after = node(one[younger]);
                free(one);
                one = after;
            }
        free(first);
        free(shared);
        free(of);
        free(by);
    }

    // A node of source `s` that nobody reads any more, or a new one; null without memory.
    int64_t *unused_node(int64_t s) const {
        Source &mine = of[s];
        int64_t *oldest = mine.oldest, reached = always;
        if (!oldest || oldest == mine.last) return zeros<int64_t>(record + width);
        for (int64_t n = 0; n < sources; n++) reached = least_of(reached, acquire(begin_of(n)));
        for (int64_t r = 0; r < readers; r++) reached = least_of(reached, acquire(passed_by(r)));
        if (oldest[time] >= reached) return zeros<int64_t>(record + width);
        mine.oldest = node(oldest[younger]);
        return oldest;
    }

    // Add a record of source `s`, which is not before its last one, of `count` words. Returns false without memory.
    bool add(int64_t s, int64_t at, int64_t of_rank, const int64_t *words, int64_t count) const {
        Source &mine = of[s];
        int64_t *made = unused_node(s);
        if (!made) return false;
        made[time] = at, made[rank] = of_rank, made[source] = s, made[younger] = 0;
        for (int64_t n = 0; n < width; n++) made[record + n] = n < count ? words[n] : 0;
        // Every fourth node has two levels, and every sixteenth three.
        const int64_t height = 1 + least_of<int64_t>(__builtin_ctzll(word(++mine.count)) / 2, levels - 1);
        int64_t *behind[levels], *one = mine.search;
        for (int64_t level = levels - 1; level >= 0; level--) {
            for (int64_t *other; (other = node(acquire(one + next + level))) && !before(made, other);) one = other;
            behind[level] = one;
        }
        for (int64_t level = 0; level < height; level++)
            for (one = behind[level];;) {
                const int64_t other = acquire(one + next + level);
                if (other && !before(made, node(other))) {
                    one = node(other);
                    continue;
                }
                __atomic_store_n(made + next + level, other, __ATOMIC_RELAXED);
                if (exchange_word(one + next + level, other, address(made))) break;
            }
        if (mine.last) mine.last[younger] = address(made);
        if (!mine.oldest) mine.oldest = made;
        mine.last = made, mine.search = behind[levels - 1];
        release(last_of(s), address(made));
        release(begin_of(s), mine.search[time]);
        return true;
    }

    // The node with the next ready record of reader `r`, which stays until the next call; null if there is none.
    const int64_t *read(int64_t r) const {
        int64_t *found = node(acquire(by[r].place + next));
        if (!found || acquire(last_of(found[source])) == address(found)) return nullptr;
        by[r].place = found;
        release(passed_by(r), found[time]);
        return found;
    }

    // Open source `s` at `at`.
    bool start(int64_t s, int64_t at) const {
        release(begin_of(s), of[s].search[time]);
        return add(s, at, s, nullptr, 0);
    }
    // Open source `s`, which is closed, in the thread of source `other`. Returns the first time that it may add: behind
    // the last record of `other`, which no reader has passed.
    int64_t open_source(int64_t s, int64_t other) const {
        of[s].search = of[other].search;
        const int64_t at = of[other].last[time] + 1;
        return start(s, at) ? at : never;
    }
    // No more comes from source `s`.
    void close_source(int64_t s) const {
        release(begin_of(s), always);
        release(last_of(s), int64_t{0});
    }
    // Open reader `r`, which is closed, in the thread of reader `other`: it gets what that has not got yet.
    void open_reader(int64_t r, int64_t other) const {
        by[r].place = by[other].place;
        release(passed_by(r), by[r].place[time]);
    }
    void close_reader(int64_t r) const { release(passed_by(r), always); }
};

}  // namespace splitjoin
