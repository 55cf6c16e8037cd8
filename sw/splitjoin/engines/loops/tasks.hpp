// Tasks of the index: the arrivals of a batch go through the grids of both streams a step after the other, first the
// step's tuples are stored, then its probes look.
#pragma once

#include "loop.hpp"

namespace splitjoin {

// Kinds of tasks: one that stores tuples of a stream as they come, and of a range of its cells; and one that probes.
constexpr int64_t store_r = 0, store_s = 1, fill_r = 2, fill_s = 3, probing = 4;
// Parts of a step's probes of each stream for each thread; the least number of tuples in a part that is sorted by
// ranges of cells; streams of which none is so many times longer than the other are stored by a thread each.
constexpr int64_t parts_of_thread = 2, least_sorted = 1024, alike = 2;

// By stream: its tuples `of` the step, and the `next` one. `state`: of tuples to store, whether their grid is full; of
// probes, the thread. `found`: the range of cells to store, or the first probe, and where its matches begin and end in
// the thread's room.
struct Task {
    int64_t kind;
    struct {
        int64_t begin, end;
    } of[2];
    int64_t next[2], state;
    struct {
        int64_t first, begin, end;
    } found[2];
};
// Matches that lie one behind the other, of probes from `first` to `until`: the address of the first, how many, and the
// task that found them.
struct Piece {
    int64_t first, until, address, count, task;
};

// The number of tuples of S among arrivals, in 32 bits, so that it becomes vector code.
inline int64_t ones(const uint8_t *stream, int64_t n) {
    int32_t found = 0;
    for (int64_t i = 0; i < n; i++) found += stream[i];
    return found;
}

// The ranges of cells into which so many tuples of a batch are sorted for `threads` that store them. 1 for those that
// are stored as they come: by one thread, or by two, of which each stores one stream, if neither is much longer.
inline int64_t ranges_for(int64_t threads, int64_t n_r, int64_t n_s) {
    const bool come = threads == 1 || (threads == 2 && greatest_of(n_r, n_s) <= alike * least_of(n_r, n_s));
    return come ? 1 : threads;
}

// Write the tasks of several threads for the arrivals `stream`, in steps of `size`, and the `limits` of their phases: for
// each stream `ranges` that store, and `parts` that look into its grid. R's grid is first, so that two threads each keep
// to one grid.
inline void lay_out(Bytes stream, int64_t size, int64_t parts, int64_t ranges, RowsOut words, RowsOut limits) {
    Task *task = reinterpret_cast<Task *>(words.data);
    int64_t at = 0, r = 0, s = 0;
    for (int64_t step = 0; step < limits.size / 2; step++) {
        const int64_t begin = step * size, end = least_of(begin + size, stream.size), from[2] = {r, s};
        for (int64_t part = 0; part < parts; part++) {
            Task &in_r = task[at + 2 * ranges + part], &in_s = (&in_r)[parts];
            const int64_t first = begin + (end - begin) * part / parts, last = begin + (end - begin) * (part + 1) / parts;
            in_r.of[1].begin = in_r.next[1] = s;
            in_s.of[0].begin = in_s.next[0] = r;
            s += ones(stream.data + first, last - first);
            r = last - s;
            in_r.kind = in_s.kind = probing;
            in_r.of[1].end = s;
            in_s.of[0].end = r;
        }
        for (int64_t k = 0; k < 2 * ranges; k++) {
            const bool of_s = k >= ranges;
            Task &mine = task[at + k];
            mine.kind = ranges == 1 ? (of_s ? store_s : store_r) : (of_s ? fill_s : fill_r);
            mine.found[0].first = k % ranges;
            mine.of[0] = {from[0], r};
            mine.of[1] = {from[1], s};
            mine.next[0] = from[0];
            mine.next[1] = from[1];
        }
        limits[2 * step] = at + 2 * ranges;
        limits[2 * step + 1] = at += 2 * (ranges + parts);
    }
}

// Write the tasks of one thread: in steps of `size` arrivals, it stores R's tuples and probes with S's, and then the
// other way round, so that one grid at a time is in its caches.
inline void lay_out_for_one(Bytes stream, int64_t size, RowsOut words) {
    Task *task = reinterpret_cast<Task *>(words.data);
    const int64_t half = words.size / 28;
    int64_t r = 0, s = 0;
    for (int64_t step = 0; step < half / 2; step++) {
        const int64_t from[2] = {r, s}, end = least_of((step + 1) * size, stream.size);
        s += ones(stream.data + step * size, end - step * size);
        r = end - s;
        for (int64_t grid = 0; grid < 2; grid++)
            for (int64_t probes = 0; probes < 2; probes++) {
                Task &mine = task[grid * half + 2 * step + probes];
                mine.kind = probes ? probing : grid ? store_s : store_r;
                mine.of[0] = {from[0], r};
                mine.of[1] = {from[1], s};
                mine.next[0] = probes && !grid ? r : from[0];
                mine.next[1] = probes && grid ? s : from[1];
            }
    }
}

// Write the pieces (2, tasks) of matches that `words`, tasks, have found for R's and for S's probes. `told` gets how many
// pieces and matches of R's there are, and of S's. `rooms` (threads, 8): addresses of each thread's arrays, those of
// matches behind three others. `merged`: pieces that lie one behind the other become one.
inline void collect(RowsOut words, Rows rooms, int64_t merged, RowsOut pieces, RowsOut told) {
    const int64_t tasks = words.size / 14;
    for (int64_t side = 0; side < 2; side++) {
        Piece *of = reinterpret_cast<Piece *>(pieces.data) + side * (pieces.size / 10);
        int64_t k = 0, matches = 0;
        for (int64_t n = 0; n < tasks; n++) {
            Task &task = reinterpret_cast<Task *>(words.data)[n];
            const int64_t begin = task.found[side].begin, count = task.found[side].end - begin;
            if (count <= 0) continue;
            const int64_t address = rooms[8 * task.state + 3 + side] + 8 * begin;
            if (merged && k && of[k - 1].address + 8 * of[k - 1].count == address) {
                of[k - 1].until = task.next[side];
                of[k - 1].count += count;
            } else {
                of[k++] = {task.found[side].first, task.next[side], address, count, n};
            }
            matches += count;
            task.found[side].end = begin;
        }
        told[2 * side] = k;
        told[2 * side + 1] = matches;
    }
}

}  // namespace splitjoin
