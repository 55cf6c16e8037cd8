// A grid of cells, which hold tuples in arrival order and are compared 64 at once.
//
// A grid has two dimensions, each with levels of its own. In each dimension, the upper bits of a tuple's level choose the
// cell; the cell stores the lower eight bits, the tuple's place within the cell, as a byte. A cell is a ring buffer of
// slots, so that new tuples overwrite expired ones. Its slots form blocks of 64. The bytes of a block fill two cache
// lines; each line holds the first dimension's bytes of 32 slots, and then the second dimension's. A comparison of the
// bytes finds candidates, and the caller verifies them with the keys.
#pragma once

#include "quantizer.hpp"
#include "threads.hpp"

namespace splitjoin {

constexpr int64_t line = 32;  // bytes in a comparison

typedef uint8_t Line __attribute__((vector_size(line)));
typedef int8_t Met __attribute__((vector_size(line)));

// A line of this byte.
inline Line all_of(int64_t byte) { return Line{} + static_cast<uint8_t>(byte); }

// A bit for each byte that is not 0, where all are 0 or 255; bit 0 for the first.
inline uint32_t bits_of(Met met) {
#if defined(__clang__)
    typedef bool Truths __attribute__((ext_vector_type(line)));
    return __builtin_bit_cast(uint32_t, __builtin_convertvector(met, Truths));
#elif defined(__AVX2__)
    typedef char Chars __attribute__((vector_size(line)));
    return static_cast<uint32_t>(__builtin_ia32_pmovmskb256(reinterpret_cast<Chars>(met)));
#else
    uint32_t bits = 0;
    for (int i = 0; i < line; i++) bits |= static_cast<uint32_t>(met[i] & 1) << i;
    return bits;
#endif
}

// Tuples whose levels are computed at once; slots of a block; the distance of prefetches: how many tuples later the data
// is used; slots of a grid that is probably in the second-level cache, where prefetches only take time, unless other
// threads have written them.
constexpr int64_t at_once = 4096, block_slots = 64, ahead = 8, near_slots = 1 << 17;

inline void prefetch(const void *address) { __builtin_prefetch(address, 0, 3); }

// Of a cell: its first slot, a multiple of 64; its capacity, 64 times a power of two; the position in it of the next
// tuple; and its occupancy.
struct Head {
    int32_t base, capacity, tail, occupancy;
};

// A grid of a stream's stored tuples, which are numbered from 0: `first` is the position in the store of that number,
// `base` that of the first tuple there, `begin` that of the batch's first one. `stride`: cells in the second dimension;
// `used` (1): slots in use.
struct Grid {
    int64_t base, first, begin;
    LevelMap maps[2];
    int64_t stride;
    Head *heads;
    int64_t cells, columns;
    Array<int32_t> rows;
    BytesOut pool;
    RowsOut used;

    bool is_far(bool shared) const { return shared || rows.size > near_slots; }
    int64_t cell(int64_t level, int64_t other) const { return (level >> 8) * stride + (other >> 8); }
};

// Where a tuple belongs: its cell, its row of the batch (20 bits), and two bytes.
inline void note_cells(const int32_t *levels, const int32_t *others, int64_t n, int64_t row, int64_t stride,
                       int64_t *noted) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t cell = (levels[i] >> 8) * stride + (others[i] >> 8);
        noted[row + i] = cell << 36 | (row + i) << 16 | (levels[i] & 255) << 8 | (others[i] & 255);
    }
}
constexpr int64_t cell_of(int64_t entry) { return entry >> 36; }
constexpr int64_t row_of(int64_t entry) { return entry >> 16 & 0xFFFFF; }

// Store the tuples of `entries`, as `note_cells` makes them, from number `n` on, which lie before `until` and are of rows
// before `end`. Row 0 is tuple number `first`. Threads may do so at the same time in different cells: `shared` says so.
//
// Drops expired tuples, those with numbers below `live`, where it sees them. Returns where it stopped: at an entry of an
// earlier row than `end` if that found no free slot.
inline int64_t insert(const int64_t *entries, int64_t n, int64_t until, int64_t end, int64_t first, int64_t live,
                      bool shared, const Grid &grid) {
    const bool far = grid.is_far(shared);
    int32_t *rows = grid.rows.data;
    uint8_t *pool = grid.pool.data;
    for (; n < until; n++) {
        const int64_t entry = entries[n], row = row_of(entry);
        if (row >= end) break;
        if (far && n + ahead < until) {
            prefetch(grid.heads + cell_of(entries[n + ahead]));
            const Head &next = grid.heads[cell_of(entries[n + ahead / 2])];
            const int64_t slot = int64_t{next.base} + next.tail;
            prefetch(rows + slot);
            prefetch(pool + 2 * slot);
        }
        Head &head = grid.heads[cell_of(entry)];
        int64_t base = head.base, capacity = head.capacity, tail = head.tail, occupancy = head.occupancy;
        // Occasionally, so that expired tuples are not compared for long, and always before a cell grows.
        if ((occupancy & 31) == 31 || occupancy == capacity)
            while (occupancy > 0 && rows[base + ((tail - occupancy) & (capacity - 1))] < live) occupancy--;
        if (occupancy == capacity) {
            const int64_t at = add(grid.used, 0, 2 * capacity);
            if (at + 2 * capacity > grid.rows.size) {
                head.occupancy = static_cast<int32_t>(occupancy);
                break;
            }
            for (int64_t j = 0; j < occupancy; j++) {
                const int64_t source = base + ((tail - occupancy + j) & (capacity - 1)), target = at + j;
                const int64_t from = source / line * 64 + source % line, to = target / line * 64 + target % line;
                rows[target] = rows[source];
                pool[to] = pool[from];
                pool[to + line] = pool[from + line];
            }
            base = at;
            tail = capacity;
            capacity *= 2;
            head.base = static_cast<int32_t>(base);
            head.capacity = static_cast<int32_t>(capacity);
        }
        const int64_t slot = base + tail, byte = (slot & ~(line - 1)) * 2 + (slot & (line - 1));
        rows[slot] = static_cast<int32_t>(first + row);
        pool[byte] = static_cast<uint8_t>(entry >> 8);
        pool[byte + line] = static_cast<uint8_t>(entry);
        head.tail = static_cast<int32_t>((tail + 1) & (capacity - 1));
        head.occupancy = static_cast<int32_t>(occupancy + 1);
    }
    return n;
}

// Build a grid of stored tuples with these levels, which are numbered from 0. Returns 0 if it has too few slots; `used`
// (1) is the number that it needs. `noted` (at_once): written over.
inline int64_t build_grid(Array<const int32_t> levels, Array<const int32_t> others, int64_t stride, Numbers32 heads,
                          Array<int32_t> rows, BytesOut pool, RowsOut used, RowsOut noted) {
    Grid grid{};
    grid.stride = stride;
    grid.heads = reinterpret_cast<Head *>(heads.data);
    grid.rows = rows;
    grid.pool = pool;
    grid.used = used;
    const int64_t cells = heads.size / 4;
    for (int64_t c = 0; c < cells; c++) grid.heads[c] = {};
    for (int64_t n = 0; n < levels.size; n++) grid.heads[grid.cell(levels[n], others[n])].capacity++;
    int64_t slot = 0;
    for (int64_t c = 0; c < cells; c++) {
        int64_t capacity = block_slots;
        while (capacity * 4 < int64_t{grid.heads[c].capacity} * 5) capacity *= 2;
        grid.heads[c].base = static_cast<int32_t>(slot);
        grid.heads[c].capacity = static_cast<int32_t>(capacity);
        slot += capacity;
    }
    used[0] = slot;
    if (slot > rows.size) return 0;
    for (int64_t begin = 0; begin < levels.size; begin += at_once) {
        const int64_t n = least_of(at_once, levels.size - begin);
        note_cells(levels.data + begin, others.data + begin, n, 0, stride, noted.data);
        insert(noted.data, 0, n, n, begin, -1, false, grid);
    }
    return 1;
}

// A mask of the 64 slots of the block at `bytes`, bit 0 for the first: those whose bytes are from `low` to `low` + `width`
// in either dimension.
inline uint64_t block_mask(const uint8_t *bytes, int64_t low, int64_t width, int64_t other_low, int64_t other_width) {
    const Line lows = all_of(low), widths = all_of(width);
    const Line other_lows = all_of(other_low), other_widths = all_of(other_width);
    uint64_t found = 0;
    for (int half = 0; half < 2; half++) {
        const Line *lines = reinterpret_cast<const Line *>(bytes + half * block_slots);
        const Met met = (lines[0] - lows <= widths) & (lines[1] - other_lows <= other_widths);
        found |= uint64_t{bits_of(met)} << (half * line);
    }
    return found;
}

// Candidates so far: their slots, then their numbers, and the probe of each.
struct Candidates {
    int32_t *found, *probe_of;
    int64_t n;

    void append(int64_t slot, int64_t probe) {
        found[n] = static_cast<int32_t>(slot);
        probe_of[n++] = static_cast<int32_t>(probe);
    }
    // Append the slots in `mask` of a cell that is the block at `base`, with `left` tuples (1 or more) from slot `oldest`
    // modulo 64 on, oldest first.
    void append_block(uint64_t mask, int64_t base, int64_t oldest, int64_t left, int64_t probe) {
        const int64_t by = oldest & 63;
        uint64_t bits = (mask >> by | mask << (-by & 63)) & (~uint64_t{0} >> (64 - left));
        // Most blocks have one candidate or none, which takes no branch.
        append(base + ((oldest + (bits ? __builtin_ctzll(bits) : 0)) & 63), probe);
        n -= !bits;
        for (bits &= bits - 1; bits; bits &= bits - 1) append(base + ((oldest + __builtin_ctzll(bits)) & 63), probe);
    }
};

// Find the candidates of probes `p` to `until`, as long as there is room for those of one more, of `room` in all. Returns
// the probe to continue with; `compared` gets the tuples that were compared. `levels`: the levels between which the
// probes look (`bound`), of probe `shift` on.
inline int64_t find_candidates(int32_t (*levels)[at_once], int64_t p, int64_t until, int64_t shift, bool shared,
                               const Grid &grid, int64_t room, Candidates &to, int64_t &compared) {
    const bool far = grid.is_far(shared);
    const int32_t *lows = levels[0] - shift, *highs = levels[1] - shift;
    const int32_t *other_lows = levels[2] - shift, *other_highs = levels[3] - shift;
    const uint8_t *pool = grid.pool.data;
    const int64_t stride = grid.stride;
    for (; p < until && room - to.n > grid.rows.size; p++) {
        if (far && p + ahead < until) {
            prefetch(grid.heads + grid.cell(lows[p + ahead], other_lows[p + ahead]));
            const int64_t soon = p + ahead / 2;
            const uint8_t *bytes = pool + 2 * int64_t{grid.heads[grid.cell(lows[soon], other_lows[soon])].base};
            prefetch(bytes);
            prefetch(bytes + 64);
        }
        const int64_t first = lows[p], last = highs[p], other_first = other_lows[p], other_last = other_highs[p];
        const int64_t along = (first >> 8) * stride, column = other_first >> 8;
        const int64_t more = (last >> 8) - (first >> 8), other_more = (other_last >> 8) - column;
        if ((more | other_more) == 0) {  // most probes visit one cell
            const Head &head = grid.heads[along + column];
            const int64_t left = head.occupancy;
            if (head.capacity == block_slots && left > 0) {
                compared += left;
                to.append_block(block_mask(pool + 2 * int64_t{head.base}, first & 255, last - first, other_first & 255,
                                           other_last - other_first), head.base, head.tail - left, left, p);
                continue;
            }
        }
        for (int64_t i = 0; i <= more; i++) {
            // In a cell at the edge of the interval only some of the 256 places match.
            const int64_t low = i == 0 ? first & 255 : 0, width = (i == more ? last & 255 : 255) - low;
            for (int64_t j = 0; j <= other_more; j++) {
                const int64_t other_low = j == 0 ? other_first & 255 : 0;
                const int64_t other_width = (j == other_more ? other_last & 255 : 255) - other_low;
                // Cyclic levels wrap around from the last to the first.
                const int64_t at_column = column + j - (column + j >= stride ? stride : 0);
                const int64_t at_line = along + i * stride;
                const Head &head = grid.heads[(at_line >= grid.cells ? at_line - grid.cells : at_line) + at_column];
                const int64_t base = head.base, capacity = head.capacity;
                int64_t left = head.occupancy, oldest = (head.tail - left) & (capacity - 1);
                compared += left;
                if (left == 0) continue;
                if (capacity == block_slots) {
                    to.append_block(block_mask(pool + 2 * base, low, width, other_low, other_width), base, oldest, left,
                                    p);
                    continue;
                }
                while (left > 0) {
                    const int64_t skip = oldest & 63, part = least_of(64 - skip, left), block = base + oldest - skip;
                    uint64_t mask = block_mask(pool + 2 * block, low, width, other_low, other_width) >> skip;
                    for (mask &= ~uint64_t{0} >> (64 - part); mask; mask &= mask - 1)
                        to.append(block + skip + __builtin_ctzll(mask), p);
                    oldest = (oldest + part) & (capacity - 1);
                    left -= part;
                }
            }
        }
    }
    for (int64_t k = 0; k < to.n; k++) {  // only now, so that no probe waits for the memory of the previous one
        if (far && k + ahead < to.n) prefetch(grid.rows.data + to.found[k + ahead]);
        to.found[k] = grid.rows[to.found[k]];
    }
    return p;
}

}  // namespace splitjoin
