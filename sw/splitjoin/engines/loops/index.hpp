// The index (`grid_index.py`): a batch is stored in both streams' grids and joined, by all threads at once.
//
// One thread stores the tuples of a stream as they come. Several first sort a batch's tuples by ranges of cells (a radix
// partition: each counts a part, then moves it), so that storing a range is a task; so is a part of the step's probes.
// All threads share both grids.
#pragma once

#include "grid.hpp"
#include "tasks.hpp"
#include "tests.hpp"

namespace splitjoin {

// One stream: its grid; of its batch how many tuples, the rows below which all are expired after the batch, the windows
// of its probes, and how many matches each has; its tuples from row `from` on in the order of ranges of cells: that of a
// cell is cell * `scale` >> 32.
struct Stream {
    Grid grid;
    int64_t n, live;
    Rows start, end;
    RowsOut count;
    int64_t from, scale;
    RowsOut noted, entries, places, ends, spread;
};

// The block of the index's entries. `rooms` (threads, 8): addresses of each thread's arrays, `Room`. `dimensions`: the
// tests by which the grids are. The tests of R and then of S follow.
struct Index {
    RowsOut control;
    Rows limits;
    Task *tasks;
    int64_t task_count;
    const int64_t *rooms;
    int64_t threads, room, parts, ranges, tests, dimensions[2];
    Rows junctions;
    Stream streams[2];

    const SideTest *tests_of(int side) const { return reinterpret_cast<const SideTest *>(this + 1) + side * tests; }
};

// The arrays of a thread: levels; candidates and their probes; the matches of R's and S's probes; how many these are; the
// candidates so far; and cells of tuples, or places of ranges.
struct Room {
    int32_t (*scratch)[at_once];
    int32_t *found, *probe_of;
    int64_t *out[2], *fill, *looked, *cells;
};

// Do as `work` does in the type of a key's codes.
template <typename Work>
inline void with_codes(int64_t width, const Work &work) { width == 4 ? work(uint32_t{}) : work(uint64_t{}); }

// Note the cells of `n` tuples of the batch, from `row` on, as those of rows from `at` on.
inline void note(const Index &index, int side, int64_t row, int64_t n, int64_t at, const Room &room, int64_t *noted) {
    const Grid &grid = index.streams[side].grid;
    for (int d = 0; d < 2; d++) {
        const SideTest &test = index.tests_of(side)[index.dimensions[d]];
        with_codes(test.key_width, [&](auto code) {
            using Code = decltype(code);
            grid.maps[d].write(static_cast<const Code *>(test.key) + (grid.begin - grid.base + row), n, room.scratch[d]);
        });
    }
    note_cells(room.scratch[0], room.scratch[1], n, at, grid.stride, noted);
}

// Keep the candidates for which the condition holds, of the tuples in their probes' windows, behind `n` matches, each
// probe's by row. Returns how many there are then.
inline int64_t verify(const PairCondition &condition, const Grid &grid, const Stream &probing, const Candidates &of,
                      int64_t *out, int64_t n, uint8_t *values) {
    constexpr int64_t most = PairCondition::most;
    int64_t at[most], rows[most], begun = n, last = -1;
    uint8_t met[most];
    for (int64_t first = 0; first < of.n; first += most) {
        const int64_t count = least_of(most, of.n - first);
        const int32_t *probe = of.probe_of + first, *found = of.found + first;
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = found[i] + grid.first;
            const uint8_t seen = uint8_t{row >= probing.start[probe[i]]} & uint8_t{row < probing.end[probe[i]]};
            rows[i] = row;
            met[i] = seen;
            at[i] = seen ? row - grid.base : 0;
        }
        condition.check(count, at, probe, met, values);
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = rows[i], holds = met[i];
            begun = probe[i] == last ? begun : n;
            last = probe[i];
            out[n] = row;
            if (holds && n > begun && out[n - 1] > row) {
                int64_t k = n;
                for (; k > begun && out[k - 1] > row; k--) out[k] = out[k - 1];
                out[k] = row;
            }
            n += holds;
            probing.count[probe[i]] += holds;
        }
    }
    return n;
}

// Find the matches of the probes of stream `side` from `p` to `until`, behind `n` others. Returns the first probe for
// which there was no room; `n` moves on.
inline int64_t probe(const Index &index, int side, int64_t p, int64_t until, const Room &room, int64_t &n,
                     uint8_t *values) {
    const Stream &probing = index.streams[side];
    const Grid &grid = index.streams[1 - side].grid;
    const PairCondition condition{index.tests_of(1 - side), index.tests_of(side), index.tests, index.junctions};
    while (p < until) {
        const int64_t first = p, last = least_of(p + at_once, until);
        for (int d = 0; d < 2; d++) {
            const SideTest &test = index.tests_of(side)[index.dimensions[d]];
            const LevelMap &map = grid.maps[d];
            with_codes(test.bound_width, [&](auto code) {
                using Code = decltype(code);
                const Code *low = static_cast<const Code *>(test.low) + first;
                const Code *high = static_cast<const Code *>(test.high) + first;
                int32_t *lows = room.scratch[2 * d], *highs = room.scratch[2 * d + 1];
                map.write(low, last - first, lows);
                map.write(high, last - first, highs);
                bound(lows, highs, low, high, last - first, map.cycle(), map.numbers[3], map.numbers[4]);
            });
        }
        while (p < last) {
            if (2 * index.room - n < index.room) return p;
            Candidates found{room.found, room.probe_of, 0};
            p = find_candidates(room.scratch, p, last, first, index.ranges > 1, grid, index.room, found, *room.looked);
            n = verify(condition, grid, probing, found, room.out[side], n, values);
        }
    }
    return p;
}

// Sort the tuples of both streams by ranges of cells, in two phases of a task for each of `parts` of R's and of S's: the
// first notes cells and counts, the second moves what is noted to `entries`. `spread`: how many tuples of each part are
// in each range; `places` and `ends` get where each range begins and ends.
inline int64_t prepare(int64_t thread, int64_t block) {
    const Index &index = *reinterpret_cast<const Index *>(block);
    const Room &room = reinterpret_cast<const Room *>(index.rooms)[thread];
    for (int64_t task; (task = claim(index.control, index.limits, thread)) >= 0; complete(index.control, index.limits)) {
        const int64_t part = task % index.parts, parts = index.parts, ranges = index.ranges;
        const int side = task / parts % 2;
        const Stream &of = index.streams[side];
        const int64_t begin = of.from + (of.n - of.from) * part / parts;
        const int64_t end = of.from + (of.n - of.from) * (part + 1) / parts;
        const auto range_of = [&](int64_t entry) { return cell_of(entry) * of.scale >> 32; };
        if (of.from >= of.n) continue;  // nothing is left to store
        int64_t *mine = of.spread.data + part * ranges;
        if (task < 2 * parts) {
            for (int64_t row = begin; row < end; row += at_once)
                note(index, side, row, least_of(at_once, end - row), row, room, of.noted.data);
            for (int64_t k = 0; k < ranges; k++) mine[k] = 0;
            for (int64_t row = begin; row < end; row++) mine[range_of(of.noted[row])]++;
            continue;
        }
        int64_t *places = room.cells, total = 0;
        for (int64_t k = 0; k < ranges; k++) {
            int64_t before = 0, all = 0;
            for (int64_t other = 0; other < parts; other++) {
                const int64_t count = of.spread[other * ranges + k];
                all += count;
                before += other < part ? count : 0;
            }
            places[k] = total + before;
            if (part == 0) of.places[k] = total, of.ends[k] = total + all;
            total += all;
        }
        for (int64_t row = begin; row < end; row++) {
            const int64_t entry = of.noted[row];
            of.entries[places[range_of(entry)]++] = entry;
        }
    }
    return 1;
}

// Do tasks as long as there are any. A thread stops all when a grid is full, or its room.
inline int64_t work(int64_t thread, int64_t block) {
    const Index &index = *reinterpret_cast<const Index *>(block);
    const Room &room = reinterpret_cast<const Room *>(index.rooms)[thread];
    uint8_t *values = reinterpret_cast<uint8_t *>(room.cells);
    for (int64_t number; (number = claim(index.control, index.limits, thread)) >= 0;) {
        Task &task = index.tasks[number];
        bool full = false;
        if (task.kind == probing) {
            task.state = thread;
            for (int side = 0; side < 2; side++) {
                const auto &[begin, until] = task.of[side];
                task.found[side] = {task.next[side], room.fill[side], 0};
                if (task.next[side] < until) {
                    int64_t *count = index.streams[side].count.data;
                    for (int64_t p = begin; task.next[side] == begin && p < until; p++) count[p] = 0;
                    task.next[side] = probe(index, side, task.next[side], until, room, room.fill[side], values);
                }
                task.found[side].end = room.fill[side];
                full |= task.next[side] < until;
            }
        } else {
            const int side = task.kind == store_s || task.kind == fill_s, other = 1 - side;
            const Stream &of = index.streams[side], &others = index.streams[other];
            const Grid &grid = of.grid;
            const int64_t looking = task.of[other].begin, until = task.of[side].end, row = grid.begin - grid.first;
            // What is expired for the step's first probe is so for all later ones.
            const int64_t live = (looking < others.n ? others.start[looking] : of.live) - grid.first;
            if (task.kind == store_r || task.kind == store_s) {
                int64_t &next = task.next[side];
                for (int64_t done = 0, n = 0; next < until && done == n; next += done) {
                    n = least_of(until - next, at_once);
                    note(index, side, next, n, 0, room, room.cells);
                    done = insert(room.cells, 0, n, n, row + next, live, false, grid);
                }
                full = next < until;
            } else {
                int64_t &place = of.places[task.found[0].first];
                const int64_t end = of.ends[task.found[0].first];
                place = insert(of.entries.data, place, end, until, row, live, true, grid);
                full = place < end && row_of(of.entries[place]) < until;
            }
            task.state = full;
        }
        if (full) {
            stop(index.control);
            return 1;
        }
        complete(index.control, index.limits);
    }
    return 1;
}

// Words of a block without its tests, and of a test.
inline int64_t index_words(int64_t of_test) { return (of_test ? sizeof(SideTest) : sizeof(Index)) / 8; }

}  // namespace splitjoin
