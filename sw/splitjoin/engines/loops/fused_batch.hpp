// A batch in two calls (`fused_batch.py`): what the interpreter does between the entries of a batch.
#pragma once

#include "tasks.hpp"
#include "threads.hpp"

namespace splitjoin {

// The numbers of a batch, in the order of `fused_links.Number`; the numbers of columns follow.
struct Numbers {
    int64_t zero, n, of[2], stream, ts, row[2], at[2], time[2], base[2], most, step, least_step, most_step, least_part;
    int64_t table[2], told, part, sorted, ranges, phases, begin[2], live[2], pieces[2], out, items;
};
// What has become of a batch: nothing has changed; all matches are there; tasks have stopped; an entry
// has failed.
constexpr int64_t refused = 0, found_all = 1, has_stopped = 2, has_failed = 3;

// A number of a block to write: `constant` + `factor` * the number `of` the batch.
struct Link {
    int64_t address, constant, factor, of;
};
// A column: its stream, its number in the table, and the bytes of a value.
struct Column {
    int64_t side, number, width;
};
// Of a column of a batch: the address of its values, and that of the bits of its validity; where these begin, and how
// many there are, 0 without NULL.
struct Values {
    int64_t first, bits, offset, count;
};
// A structure of Arrow's C data interface.
struct ArrowArray {
    int64_t length, nulls, offset, buffer_count, child_count;
    const void **buffers;
    ArrowArray **children, *dictionary;
    void (*release)(ArrowArray *);
    void *own;
};

inline void write_links(const Link *links, int64_t n, const Numbers &of) {
    const int64_t *numbers = reinterpret_cast<const int64_t *>(&of);
    for (int64_t k = 0; k < n; k++)
        *reinterpret_cast<int64_t *>(links[k].address) = links[k].constant + links[k].factor * numbers[links[k].of];
}

// Write the values of `columns`, as far as the tables are told by their structures, and give these back: the tables stay.
inline void read_columns(Array<const Column> columns, Numbers &of, Values *values) {
    for (int64_t k = 0; k < columns.size; k++) {
        const auto *table = reinterpret_cast<const ArrowArray *>(of.table[columns[k].side]);
        if (!table) continue;
        const ArrowArray &column = *table->children[columns[k].number];
        const int64_t bits = column.nulls ? reinterpret_cast<int64_t>(column.buffers[0]) : 0;
        const int64_t first = reinterpret_cast<int64_t>(column.buffers[1]) + column.offset * columns[k].width;
        values[k] = {first, bits, bits ? column.offset : 0, bits ? column.length : 0};
    }
    for (const int64_t address : of.table)
        if (auto *table = reinterpret_cast<ArrowArray *>(address)) table->release(table);
}

// Threads that run entries whose tasks form phases.
struct Sharing {
    RowsOut board;
    int64_t size, patient;

    // 0 if one failed.
    int64_t run(RowsOut control, Rows limits, int64_t entry, int64_t block) const {
        reset(control, limits, patient);
        return size == 1 ? alone(entry, block) : share(board, entry, block, size);
    }
};

template <typename T>
Array<const T> structures(Rows words) {
    return {reinterpret_cast<const T *>(words.data), words.size / static_cast<int64_t>(sizeof(T) / 8)};
}
inline Rows part_of(RowsOut words, int64_t begin, int64_t end) { return {words.data + begin, end - begin}; }

// Store the tuples of a batch and find its matches, by `size` threads. Returns what has become of it; `told` gets the
// pairs in its windows, the matches, the items, the candidates, and the first rows of R and S that later probes may see.
//
// `links`: those of the batch, of sorting, and of the tasks. `jobs`: the entries of windows and codes, with their blocks
// and parts. `marks` (8): where the links of sorting and of the tasks begin; then of jobs, of sorting and of the tasks
// their entry and its block. `limits` (2): rows of windows of R and S. `starts` (2): where they begin; moves on. `before`
// (parts + 1), `extents` (2 * parts): by parts of the batch. `controls`: of jobs, of sorting and of the tasks. `phases`:
// where those of jobs end, and then the two of sorting; `ends`: those of the tasks. `rooms`: addresses of the threads'
// arrays. `every`: a star after so many probes, 0 for none; `opened` (2): probes since the last one. `board`: of helpers
// that are called.
inline int64_t find_matches(RowsOut numbers, Rows columns, Rows links, Rows jobs, Rows marks, Rows limits, RowsOut starts,
                            RowsOut before, Rows extents, RowsOut tasks, RowsOut controls, RowsOut phases, RowsOut ends,
                            Rows rooms, RowsOut pieces, int64_t every, Rows opened, RowsOut board, int64_t size,
                            int64_t patient, RowsOut told) {
    Numbers &of = *reinterpret_cast<Numbers *>(numbers.data);
    const Sharing threads{board, size, patient};
    const auto control = [&](int64_t n) { return RowsOut{controls.data + n * control_words, control_words}; };
    const auto link = structures<Link>(links);
    const int64_t n = of.n, parts = before.size - 1;
    of.part = (n + parts - 1) / parts;
    before[parts] = of.of[1];
    read_columns(structures<Column>(columns), of, reinterpret_cast<Values *>(&of + 1));
    for (int64_t side = 0; side < 2; side++) {
        of.begin[side] = starts[side];
        starts[side] = greatest_of(starts[side], of.row[side] + of.of[side] - limits[side]);
    }
    write_links(link.data, marks[0], of);
    int64_t done = 1;
    for (int64_t k = 0; size == 1 && k < jobs.size; k += 3) done &= SPLITJOIN_CALL(jobs[k], jobs[k + 2], jobs[k + 1]);
    if (size > 1) done = threads.run(control(0), part_of(phases, 0, phases.size - 2), marks[2], marks[3]);
    int64_t pairs = 0, longest = 0;
    for (int64_t part = 0; part < parts; part++) {
        pairs += extents[2 * part];
        longest = greatest_of(longest, extents[2 * part + 1]);
    }
    for (int64_t k = 0; k < told.size; k++) told[k] = 0;
    told[0] = pairs;
    if (longest > of.most) {
        for (int64_t side = 0; side < 2; side++) starts[side] = of.begin[side];
        return refused;
    }
    for (int64_t side = 0; side < 2; side++) told[4 + side] = of.live[side] = starts[side];
    const Bytes stream{reinterpret_cast<const uint8_t *>(of.stream), n};
    const int64_t ranges = of.ranges = ranges_for(size, of.of[0], of.of[1]);
    int64_t step = least_of(greatest_of(longest / of.step, of.least_step), of.most_step);
    RowsOut mine{tasks.data, 0};
    const auto clear = [&](int64_t count) {
        mine.size = 14 * count;
        for (int64_t k = 0; k < mine.size; k++) mine[k] = 0;
    };
    if (size == 1) {
        ends[0] = (n + step - 1) / step * 4;
        of.phases = 1;
        clear(ends[0]);
        lay_out_for_one(stream, step, mine);
    } else {
        step = least_of(step, n);
        const int64_t steps = (n + step - 1) / step;
        const int64_t probes = greatest_of<int64_t>(1, least_of(parts_of_thread * size, step / of.least_part));
        of.phases = 2 * steps;
        clear(steps * 2 * (probes + ranges));
        lay_out(stream, step, probes, ranges, mine, {ends.data, of.phases});
    }
    if (ranges > 1) {
        of.sorted = greatest_of<int64_t>(1, least_of(size, greatest_of(of.of[0], of.of[1]) / least_sorted));
        const RowsOut of_sorting{phases.data + phases.size - 2, 2};
        of_sorting[0] = 2 * of.sorted;
        of_sorting[1] = 4 * of.sorted;
        write_links(link.data + marks[0], marks[1] - marks[0], of);
        done &= threads.run(control(1), {of_sorting.data, 2}, marks[4], marks[5]);
    }
    write_links(link.data + marks[1], link.size - marks[1], of);
    done &= threads.run(control(2), part_of(ends, 0, of.phases), marks[6], marks[7]);
    if (!done) return has_failed;
    if (control(2)[stopped]) return has_stopped;
    int64_t counts[4];
    collect(mine, rooms, 1, pieces, {counts, 4});
    of.pieces[0] = counts[0];
    of.pieces[1] = counts[2];
    for (int64_t thread = 0; thread < size; thread++) {
        auto *fill = reinterpret_cast<int64_t *>(rooms[8 * thread + 5]);
        auto *looked = reinterpret_cast<int64_t *>(rooms[8 * thread + 6]);
        told[3] += *looked;
        fill[0] = fill[1] = *looked = 0;
    }
    told[1] = told[2] = counts[1] + counts[3];
    for (int64_t side = 0; every && side < 2; side++) told[2] += (opened[side] + of.of[side]) / every;
    return found_all;
}

// Write the items of the batch whose matches have been found, by `entry`: `size` threads do, in
// parts of the arrivals that begin at `cuts` (parts + 1). Returns 0 if it failed.
inline int64_t write_items(RowsOut numbers, Rows links, int64_t entry, int64_t block, int64_t every, RowsOut opened,
                           RowsOut cuts, RowsOut control, Rows phases, RowsOut board, int64_t size, int64_t patient) {
    Numbers &of = *reinterpret_cast<Numbers *>(numbers.data);
    for (int64_t part = 0; part < cuts.size; part++) cuts[part] = of.n * part / (cuts.size - 1);
    const auto link = structures<Link>(links);
    write_links(link.data, link.size, of);
    const int64_t done = Sharing{board, size, patient}.run(control, phases, entry, block);
    for (int64_t side = 0; every && side < 2; side++) opened[side] = (opened[side] + of.of[side]) % every;
    return done;
}

}  // namespace splitjoin
