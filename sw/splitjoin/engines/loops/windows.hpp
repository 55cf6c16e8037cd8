// The window of each probe of a batch, as an interval of the other stream's row ids (`timeline.py`). A batch may be
// divided into parts, of `size` arrivals each.
#pragma once

#include "tasks.hpp"

namespace splitjoin {

// Pairs of probes and stored tuples in windows, and the tuples of the longest one.
struct Extent {
    int64_t pairs = 0, longest = 0;

    void add(const int64_t *start, const int64_t *end, int64_t n) {
        for (int64_t i = 0; i < n; i++) {
            pairs += end[i] - start[i];
            longest = greatest_of(longest, end[i] - start[i]);
        }
    }
};

// The block of the entries: the arrivals; how many tuples of S are in each part (of part k behind k + 1); the first row
// of each stream's windows, its next row, and the rows of its windows, without the arrivals; the windows of its probes;
// `extents`, two for each part. By time also the event times of arrivals, those of each stream's tuples, and those that
// its windows may hold, of rows from `base` on, which are at most `length` old, if that is not -1; and `starts` (2), where
// windows of tuples after the batch begin.
struct Windows {
    Bytes stream;
    int64_t size;
    RowsOut before;
    int64_t begin[2], row[2], limit[2];
    struct {
        RowsOut first, last;
    } of[2];
    RowsOut extents;
    Rows ts;
    RowsOut now[2];
    Rows times[2];
    int64_t base[2], length[2];
    RowsOut starts;
};

// A part: its arrivals, and the tuples of R and S in them.
struct Span {
    int64_t at, until, from[2], to[2];

    Span(int64_t part, const Windows &of) : at(part * of.size), until(least_of(at + of.size, of.stream.size)) {
        int64_t s = 0;
        for (int64_t other = 0; other < part; other++) s += of.before[other + 1];
        from[1] = s;
        to[1] = s + of.before[part + 1];
        from[0] = at - s;
        to[0] = until - to[1];
    }
};

inline void note_extent(int64_t part, const Span &span, const Windows &of) {
    Extent extent;
    for (int side = 0; side < 2; side++)
        extent.add(of.of[side].first.data + span.from[side], of.of[side].last.data + span.from[side],
                   span.to[side] - span.from[side]);
    of.extents[2 * part] = extent.pairs;
    of.extents[2 * part + 1] = extent.longest;
}

// Count the tuples of S in a part.
inline int64_t count_part(int64_t part, int64_t block) {
    const Windows &of = *reinterpret_cast<const Windows *>(block);
    const int64_t at = part * of.size;
    of.before[part + 1] = ones(of.stream.data + at, least_of(of.size, of.stream.size - at));
    return 1;
}

// Write the windows of a part by rows: the last ones of the other stream. Without branches on the stream, as arrivals may
// come in any order.
inline int64_t place_part(int64_t part, int64_t block) {
    const Windows &of = *reinterpret_cast<const Windows *>(block);
    const Span span(part, of);
    int64_t *last_r = of.of[0].last.data, *last_s = of.of[1].last.data;
    int64_t at = span.at, r = span.from[0], s = span.from[1];
    while (r < span.to[0] && s < span.to[1]) {
        last_r[r] = of.row[1] + s;
        last_s[s] = of.row[0] + r;
        const int64_t mine = of.stream[at++];
        s += mine;
        r += 1 - mine;
    }
    for (int64_t i = r; i < span.to[0]; i++) last_r[i] = of.row[1] + s;
    for (int64_t i = s; i < span.to[1]; i++) last_s[i] = of.row[0] + r;
    for (int side = 0; side < 2; side++) {
        const int64_t begin = of.begin[1 - side], limit = of.limit[1 - side];
        const auto &[first, last] = of.of[side];
        for (int64_t i = span.from[side]; i < span.to[side]; i++) first[i] = greatest_of(begin, last[i] - limit);
    }
    note_extent(part, span, of);
    return 1;
}

// Write the event times of a part's arrivals to those of the tuples of R and of S.
inline int64_t divide_part(int64_t part, int64_t block) {
    const Windows &of = *reinterpret_cast<const Windows *>(block);
    const Span span(part, of);
    int64_t *now_r = of.now[0].data, *now_s = of.now[1].data, at = span.at, r = span.from[0], s = span.from[1];
    while (r < span.to[0] && s < span.to[1]) {
        now_r[r] = now_s[s] = of.ts[at];
        const int64_t mine = of.stream[at++];
        s += mine;
        r += 1 - mine;
    }
    for (; r < span.to[0]; r++) now_r[r] = of.ts[at++];
    for (; s < span.to[1]; s++) now_s[s] = of.ts[at++];
    return 1;
}

// True if `time` is more than `length` before `now`, which is not earlier: the difference of two int64 fits uint64.
constexpr bool is_older(int64_t now, int64_t time, int64_t length) { return word(now) - word(time) > word(length); }

// The first row from `least` to `most` of a stream that is not too old.
inline int64_t first_seen(const Windows &of, int side, int64_t now, int64_t least, int64_t most) {
    while (least < most) {
        const int64_t middle = (least + most) >> 1;
        if (is_older(now, of.times[side][middle - of.base[side]], of.length[side]))
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

// Narrow the windows of a part by time. The last part also moves `starts`.
inline int64_t narrow_part(int64_t part, int64_t block) {
    const Windows &of = *reinterpret_cast<const Windows *>(block);
    const Span span(part, of);
    for (int side = 0; side < 2; side++) {
        const int other = 1 - side;
        const int64_t begin = span.from[side], until = span.to[side];
        if (of.length[other] == -1 || begin == until) continue;
        const auto &[first, last] = of.of[side];
        const int64_t *now = of.now[side].data;
        int64_t at = first_seen(of, other, now[begin], first[begin], last[begin]);
        for (int64_t i = begin; i < until; i++) {
            at = greatest_of(at, first[i]);
            while (at < last[i] && is_older(now[i], of.times[other][at - of.base[other]], of.length[other])) at++;
            first[i] = at;
        }
    }
    note_extent(part, span, of);
    for (int side = 0; span.until == of.stream.size && side < 2; side++)  // tuples expire on any arrival
        if (of.length[side] != -1)
            of.starts[side] = first_seen(of, side, of.ts[span.until - 1], of.starts[side], of.row[side] + span.to[side]);
    return 1;
}

// The pairs in windows, and the tuples of the longest one, to `told` (2).
inline void extent(Rows start_r, Rows end_r, Rows start_s, Rows end_s, RowsOut told) {
    Extent of;
    of.add(start_r.data, end_r.data, start_r.size);
    of.add(start_s.data, end_s.data, start_s.size);
    told[0] = of.pairs;
    told[1] = of.longest;
}

}  // namespace splitjoin
