// ScaleJoin (Gulisano, Nikolakopoulos, Papatriantafilou and Tsigas, 2016): threads that read all tuples from one ScaleGate,
// and add their results to another.
#pragma once

#include "splitjoin.hpp"

namespace splitjoin {

// A processing thread, until the session stops. It stores every k-th tuple of both streams, as SplitJoin's core does; a
// result has the place of its probe as its time, and the row that was stored as its rank. Behind a probe, and where input
// says how far it is, the thread says so too.
inline int64_t scalejoin_core(int64_t address, int64_t core) {
    const Session &session = *reinterpret_cast<const Session *>(address);
    const Matcher matcher(session);
    Segment stored[2] = {Segment(head + session.tests), Segment(head + session.tests)};
    int64_t count[2] = {0, 0};
    if (!matcher) return session.fail(), 0;
    for (int64_t looks = 1;; looks++) {
        const int64_t *node = session.gate_in.read(core);
        if (!node) {
            if (session.stops()) return 0;
            rest(looks);
            continue;
        }
        looks = 0;
        if (node[ScaleGate::time] == never) continue;
        const int64_t *message = node + ScaleGate::record, side = message[of_kind], probe = message[of_row];
        int64_t result[result_words] = {of_star, side, side ? -1 : probe, side ? probe : -1};
        if (side == at_end) {
            result[0] = of_slice;
        } else {
            Segment &mine = stored[side], &other = stored[1 - side];
            drop_expired(session, other, count[1 - side], message);
            if (!matcher.scan(other, other.first, other.end, message, [&](int64_t position) {
                    const int64_t row = other.at(of_row, position);
                    const int64_t pair[result_words] = {of_pair, side, side ? row : probe, side ? probe : row};
                    return session.gate_out.add(core, node[ScaleGate::time], row, pair, result_words);
                }))
                return session.fail(), 0;
            if (count[side]++ % session.cores == core && !mine.push(message)) return session.fail(), 0;
        }
        if (!session.gate_out.add(core, node[ScaleGate::time], always - session.cores + core, result,
                                  result_words))
            return session.fail(), 0;
    }
}

// Write the ready results to `items` from word `at` on, and return the word behind the last. A star is due when all cores
// have said that they are behind its probe.
inline int64_t take_results(Session &session, RowsOut items, int64_t at) {
    while (at + item_words <= items.size) {
        const int64_t *node = session.gate_out.read(0);
        if (!node) return at;
        const int64_t *result = node + ScaleGate::record;
        if (node[ScaleGate::time] == never || result[0] == of_slice) continue;
        if (result[0] == of_star) {
            if (++session.stars % session.cores) continue;
            const int64_t side = result[1];
            if (!session.every || ++session.open[side] < session.every) continue;
            session.open[side] = 0;
        }
        for (int64_t n = 0; n < result_words; n++) items[at + n] = result[n];
        items[at + result_words] = now();
        at += item_words;
    }
    return at;
}

}  // namespace splitjoin
