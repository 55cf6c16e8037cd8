// CellJoin (Gedik, Bordawekar and Yu, 2009): for each probe, the window is partitioned anew into equal parts.
#pragma once

#include "splitjoin.hpp"

namespace splitjoin {

// A worker, until the session stops. The feeder keeps both windows, and says with each probe which positions it sees; the
// worker compares its part of them. So the parts of two probes that follow each other begin elsewhere. The feeder
// writes tuples behind the last one meanwhile, and where the oldest were: no worker reads there.
inline int64_t celljoin_core(int64_t address, int64_t core) {
    const Session &session = *reinterpret_cast<const Session *>(address);
    const Matcher matcher(session);
    Probes probes[2];
    if (!matcher) return session.fail(), 0;
    while (const int64_t *message = session.next(session.input[0], core)) {
        const int64_t side = message[of_kind], from = message[of_place], window = message[of_start] - from;
        if (!give_pairs(session, core, matcher, session.windows[1 - side], from + window * core / session.cores,
                        from + window * (core + 1) / session.cores, message) ||
            !star_due(session, core, side, probes[side]))
            return 0;
        probes[side].count++;
        session.input[0].pop(core);
    }
    return 0;
}

}  // namespace splitjoin
