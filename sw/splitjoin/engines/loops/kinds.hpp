// Loops that decide the rows of a batch of outer, semi, anti and backward as-of joins (`KindOperator`): arrivals, items
// and undecided tuples are passed once or twice, as all are in the order of arrival.
#pragma once

#include "loop.hpp"

namespace splitjoin {

// A result item, as `ITEM` of `device.py` lays it out: a pair if `kind` is 0, else a star.
struct __attribute__((packed)) Item {
    uint8_t kind, side;
    int64_t row[2];  // of R, and of S
};
template <>
constexpr char letter<Item> = 'T';

using Items = Array<const Item>;
using ItemsOut = Array<Item>;

constexpr int64_t never = INT64_MAX;  // an arrival that has not come

// Write the positions, from `base` on, and the `times` of the arrivals `stream`, each to those of its stream.
inline void spread_arrivals(Bytes stream, Rows times, int64_t base, RowsOut position_r, RowsOut time_r,
                            RowsOut position_s, RowsOut time_s) {
    int64_t r = 0, s = 0;
    for (int64_t k = 0; k < stream.size; k++) {
        const bool of_s = stream[k];
        (of_s ? position_s[s] : position_r[r]) = base + k;
        (of_s ? time_s[s++] : time_r[r++]) = times[k];
    }
}

// Note the pairs among the `items`: their tuples are open no more. Writes for each item that is a row, or a star, the
// position of its probe to `at`, -1 for others; and to `counts` (3) how many there are, and how many of the first
// `closed_r` and `closed_s` tuples are open. A count of -1 says that an item is of tuples that are not among these, as
// after an edited snapshot.
//
// `position_r`, `open_r`: of R's undecided tuples, from row ids `new_r` and `first_r` on; `open_r` is empty if nobody
// waits for R. `pairs`: 2 if all are rows, 1 if the first one of each tuple of R is, else 0. `back`: of R's tuples the
// partner that an as-of join has chosen so far, the last one before it (`time_r`, `time_s`), or at its time if `exact`;
// empty for others.
inline void note_items(Items items, Rows position_r, Rows position_s, int64_t new_r, int64_t new_s, int64_t first_r,
                       int64_t first_s, RowsOut open_r, RowsOut open_s, int64_t pairs, int64_t closed_r,
                       int64_t closed_s, RowsOut back, Rows time_r, Rows time_s, int64_t exact, RowsOut at,
                       RowsOut counts) {
    // Looked up, as a branch on the stream could not be foreseen.
    const Rows positions[] = {position_r, position_s};
    const int64_t from[] = {new_r, new_s};
    int64_t kept = 0;
    for (int64_t i = 0; i < items.size; i++) {
        const Item &item = items[i];
        const int64_t side = item.side & 1, probe = item.row[side] - from[side], r = item.row[0] - first_r,
                      s = item.row[1] - first_s;
        if (item.side > 1 || word(probe) >= word(positions[side].size) ||
            (item.kind == 0 && (r >= time_r.size || s >= time_s.size || (open_s.size && s < 0)))) {
            counts[0] = -1;
            return;
        }
        int64_t position = positions[side][probe];
        if (item.kind == 0) {
            int64_t is_first = 0;
            if (back.size) {
                if (r >= 0 && s >= 0 && open_r[r] && (time_s[s] < time_r[r] || (exact && time_s[s] == time_r[r])))
                    back[r] = item.row[1];
            } else {
                if (open_r.size && r >= 0) {  // others have a pair, and were dropped
                    is_first = open_r[r];
                    open_r[r] = 0;
                }
                if (open_s.size) open_s[s] = 0;
            }
            if (pairs == 0 || (pairs == 1 && !is_first)) position = -1;
        }
        at[i] = position;
        kept += position >= 0;
    }
    counts[0] = kept;
    counts[1] = counts[2] = 0;
    for (int64_t k = 0; k < least_of(closed_r, open_r.size); k++) counts[1] += open_r[k] != 0;
    for (int64_t k = 0; k < least_of(closed_s, open_s.size); k++) counts[2] += open_s[k] != 0;
}

// The tuples of a stream that a batch decides and that are rows, one after the other, from row id `first` on.
//
// `closed`: how many may be decided. `about`: which decided tuples are rows, 1 for all, 2 for those with a partner in
// `back`; 1 if time closes the window, and after how many ticks (unsigned); the tuples of the window, 0 without a limit;
// 1 if tuples are decided as they arrive.
struct Deciding {
    int64_t first;
    Rows position, time;
    RowsOut open;
    int64_t closed;
    Rows about, back, times;
    int64_t base;

    // The one that is next: its number, the position of the arrival that decides it, `never` if there is none, and its
    // last time.
    int64_t row = -1, by = never, last = never;
    int64_t place = 0;  // the first arrival that comes too late for it

    // Go on to the next one. None is open any more, but those behind the first one that no arrival decides.
    void next() {
        const uint64_t length = word(about[2]);
        while (++row < least_of(closed, open.size)) {
            if (!open[row]) continue;
            int64_t by_time = never, until = never;
            by = never;
            if (about[4]) {
                by = position[row];
            } else if (about[1]) {
                until = static_cast<int64_t>(word(time[row]) + least_of(length, word(never) - word(time[row])));
                while (place < times.size && times[place] <= until) place++;
                if (place < times.size) by_time = base + place;
            }
            if (about[3] && !about[4] && row + about[3] < position.size) by = position[row + about[3]];
            if (by == never && by_time == never) break;
            open[row] = 0;
            if (about[0] == 1 || (about[0] == 2 && back[row] >= 0)) {
                last = by_time <= by ? until : never;
                by = least_of(by, by_time);
                return;
            }
        }
        closed = 0;
        by = never;
    }
};

// Write what is kept of `items`, and the tuples of both streams that are decided and rows (`Deciding`), to `out`, in
// total order. Returns how many. `at`, `open_r`, `back` as of `note_items`; `semi`: 1 if the rows of pairs have no S.
// `times`: of the arrivals from position `base` on, which rise.
inline int64_t write_rows(Items items, Rows at, int64_t semi, Rows times, int64_t base, Rows back, int64_t first_r,
                          Rows position_r, Rows time_r, RowsOut open_r, int64_t closed_r, Rows about_r,
                          int64_t first_s, Rows position_s, Rows time_s, RowsOut open_s, int64_t closed_s,
                          Rows about_s, ItemsOut out) {
    Deciding r{first_r, position_r, time_r, open_r, closed_r, about_r, back, times, base};
    Deciding s{first_s, position_s, time_s, open_s, closed_s, about_s, back, times, base};
    r.next();
    s.next();
    int64_t i = 0, made = 0;
    while (true) {
        const bool of_r = r.by < s.by || (r.by == s.by && r.by != never && r.last <= s.last);
        const int64_t waited = of_r ? r.by : s.by;
        for (; i < items.size && at[i] < waited; i++) {
            if (at[i] < 0) continue;
            out[made] = items[i];
            if (semi && items[i].kind == 0) out[made].row[1] = -1;
            made++;
        }
        if (waited == never) return made;
        if (of_r) {
            out[made++] = {0, 0, {first_r + r.row, back.size ? back[r.row] : -1}};
            r.next();
        } else {
            out[made++] = {0, 1, {-1, first_s + s.row}};
            s.next();
        }
    }
}

}  // namespace splitjoin
