// SplitJoin (Najafi, Sadoghi and Jacobsen, 2016): independent cores, of which each stores every k-th tuple of both streams.
#pragma once

#include "parts.hpp"

namespace splitjoin {

// The probes of one stream as a core sees them: how many there were, and since the last star.
struct Probes {
    int64_t count = 0, open = 0;
};

// Stars of a probe of `side`, which is done: one behind each group of `session.every`.
inline bool star_due(const Session &session, int64_t core, int64_t side, Probes &probes) {
    if (!session.every || ++probes.open < session.every) return true;
    probes.open = 0;
    return session.give(core, of_star, side, side ? -1 : probes.count, side ? probes.count : -1);
}

// The pairs of the probe `message` with tuples of `stored` from `from` to before `to`.
inline bool give_pairs(const Session &session, int64_t core, const Matcher &matcher, const Segment &stored, int64_t from,
                       int64_t to, const int64_t *message) {
    const int64_t side = message[of_kind], probe = message[of_row];
    return matcher.scan(stored, from, to, message, [&](int64_t position) {
        const int64_t row = stored.at(of_row, position);
        return session.give(core, of_pair, side, side ? row : probe, side ? probe : row);
    });
}

// Drop the tuples of `other` that the probe `message` does not see, of a stream of `count` tuples.
inline void drop_expired(const Session &session, Segment &other, int64_t count, const int64_t *message) {
    const int64_t of = 1 - message[of_kind];
    while (other.first < other.end &&
           (other.at(of_row, other.first) < count - session.rows[of] ||
            (session.timed[of] &&
             word(message[of_time]) - word(other.at(of_time, other.first)) > session.lengths[of])))
        other.first++;
}

// A core, until the session stops: its sub-windows are its own, and it drops what a probe sees no more by itself.
inline int64_t splitjoin_core(int64_t address, int64_t core) {
    const Session &session = *reinterpret_cast<const Session *>(address);
    const Matcher matcher(session);
    Segment stored[2] = {Segment(head + session.tests), Segment(head + session.tests)};
    Probes probes[2];
    if (!matcher) return session.fail(), 0;
    while (const int64_t *message = session.next(session.input[0], core)) {
        const int64_t side = message[of_kind], row = message[of_row];
        Segment &mine = stored[side], &other = stored[1 - side];
        drop_expired(session, other, probes[1 - side].count, message);
        int64_t from = other.first;
        for (; session.slice && other.end - from > session.slice; from += session.slice)
            if (!give_pairs(session, core, matcher, other, from, from + session.slice, message) ||
                !session.give(core, of_slice, side, side ? -1 : row, side ? row : -1))
                return 0;
        if (!give_pairs(session, core, matcher, other, from, other.end, message) ||
            !star_due(session, core, side, probes[side]))
            return 0;
        if (probes[side].count++ % session.cores == core && !mine.push(message)) return session.fail(), 0;
        session.input[0].pop(core);
    }
    return 0;
}

}  // namespace splitjoin
