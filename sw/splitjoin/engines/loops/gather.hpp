// The matches of all probes as result items in order, each written once (`gather.py`).
//
// Threads share the arrivals of a batch. The place of each part's items follows from how many the parts before it have.
#pragma once

#include "kinds.hpp"
#include "tasks.hpp"
#include "threads.hpp"

namespace splitjoin {

// Of one stream of a batch: the row id of its first probe; per probe its window and how many matches it has; the pieces
// of their rows, of `width` words each, with the address of the rows and their number in the third and the fourth.
struct Answers {
    int64_t first;
    Rows start, end, counts, pieces;
    int64_t width;
};

// The rows of matches, one piece after the other.
struct Matches {
    const int64_t *piece, *behind;
    int64_t width, left = 0;
    const int64_t *row = nullptr;

    // Those from number `match` on.
    Matches(const Answers &of, int64_t match) : piece(of.pieces.data), behind(piece + of.pieces.size), width(of.width) {
        for (; piece < behind && match >= piece[3]; piece += width) match -= piece[3];
        if (piece < behind) take(match);
    }
    void take(int64_t skipped) {
        row = reinterpret_cast<const int64_t *>(piece[2]) + skipped;
        left = piece[3] - skipped;
    }
    int64_t next() {
        if (!left) {
            piece += width;
            take(0);
        }
        left--;
        return *row++;
    }
};

// A batch whose items are written: a star after `every` probes of a stream, 0 for none; also between slices of `inner`
// stored tuples, 0 for none. `opened` (2): probes of R and S since the last star.
struct Gathering {
    Bytes stream;
    Answers of[2];
    int64_t every, inner;
    Rows opened;
    ItemsOut out;

    // The stars between slices of `inner` stored tuples in the windows of probes `begin` to `until`.
    int64_t slices(int side, int64_t begin, int64_t until) const {
        int64_t n = 0;
        for (int64_t p = begin; inner && p < until; p++)
            n += greatest_of<int64_t>((of[side].end[p] - of[side].start[p] - 1) / inner, 0);
        return n;
    }

    // Write the items of the arrivals `begin` to `until`, whose first probes are `next`, behind those of so many matches
    // and of so many stars between `slices_before`.
    void write(int64_t begin, int64_t until, int64_t r, int64_t s, int64_t matches_r, int64_t matches_s,
               int64_t slices_before) const {
        int64_t next[2] = {r, s}, open[2] = {opened[0] + r, opened[1] + s};
        Item *to = out.data + matches_r + matches_s + slices_before;
        for (int side = 0; every && side < 2; side++) {
            to += open[side] / every;
            open[side] %= every;
        }
        Matches found[2] = {{of[0], matches_r}, {of[1], matches_s}};
        for (int64_t n = begin; n < until; n++) {
            const uint8_t side = stream[n];
            const Answers &mine = of[side];
            const int64_t p = next[side]++, probe = mine.first + p;
            const auto put = [&](uint8_t kind, int64_t stored) {
                *to++ = {kind, side, side ? stored : probe, side ? probe : stored};
            };
            int64_t limit = inner ? mine.start[p] + inner : 0;
            for (int64_t left = mine.counts[p]; left; left--) {
                const int64_t row = found[side].next();
                for (; inner && row >= limit; limit += inner) put(1, -1);
                put(0, row);
            }
            for (; inner && limit < mine.end[p]; limit += inner) put(1, -1);
            if (++open[side] == every) {
                open[side] = 0;
                put(1, -1);
            }
        }
    }
};

// Three phases of a task for each part of the arrivals: count its probes, count their matches, write the items. `cuts`
// (parts + 1): where the parts begin. `parts` (4 each): the probes of S, then the matches of R's and S's probes, and the
// stars within these. One part has no phases, and no control.
inline void gather(int64_t thread, RowsOut control, Rows limits, Rows cuts, RowsOut parts, Bytes stream, int64_t first_r,
                   Rows start_r, Rows end_r, Rows counts_r, Rows pieces_r, int64_t width_r, int64_t first_s, Rows start_s,
                   Rows end_s, Rows counts_s, Rows pieces_s, int64_t width_s, int64_t every, int64_t inner, Rows opened,
                   ItemsOut out) {
    const Gathering all{stream, {{first_r, start_r, end_r, counts_r, pieces_r, width_r},
                                 {first_s, start_s, end_s, counts_s, pieces_s, width_s}}, every, inner, opened, out};
    const int64_t n = parts.size / 4;
    if (n <= 1) return all.write(0, stream.size, 0, 0, 0, 0, 0);
    for (int64_t task; (task = claim(control, limits, thread)) >= 0; complete(control, limits)) {
        const int64_t part = task % n, a = cuts[part], b = cuts[part + 1];
        int64_t *mine = parts.data + 4 * part;
        if (task < n) {
            mine[0] = ones(stream.data + a, b - a);
            continue;
        }
        int64_t s = 0, matches[2] = {0, 0}, slices = 0;
        for (int64_t before = 0; before < part; before++) {
            const int64_t *of = parts.data + 4 * before;
            s += of[0];
            matches[0] += of[1];
            matches[1] += of[2];
            slices += of[3];
        }
        if (task >= 2 * n) {
            all.write(a, b, a - s, s, matches[0], matches[1], slices);
            continue;
        }
        const int64_t begin[2] = {a - s, s}, until[2] = {b - s - mine[0], s + mine[0]};
        mine[3] = 0;
        for (int side = 0; side < 2; side++) {
            int64_t total = 0;
            for (int64_t p = begin[side]; p < until[side]; p++) total += all.of[side].counts[p];
            mine[1 + side] = total;
            mine[3] += all.slices(side, begin[side], until[side]);
        }
    }
}

}  // namespace splitjoin
