// A session as its first thread sees it: it opens and closes it, feeds the cores, and collects their results.
#pragma once

#include "scalejoin.hpp"

namespace splitjoin {

// Free a session whose threads have ended.
inline void close_session(int64_t address) {
    Session *session = reinterpret_cast<Session *>(address);
    for (const Queue &queue : session->input) queue.free_memory();
    for (Queue *queues : session->of_cores) {
        for (int64_t core = 0; queues && core < session->cores; core++) queues[core].free_memory();
        free(queues);
    }
    for (Segment &window : session->windows) free(window.data);
    session->gate_in.free_memory();
    session->gate_out.free_memory();
    free(session->shared);
    free(session);
}

// The address of a new session; 0 if there is no more memory. `numbers`: the cores, the tests, what `Session` has from
// `every` to `threshold` in its order, the way of tuples, the most tuples of R's and of S's window, the longest time of
// each, and -1 where times do not matter; and the places of queues to the cores and of queues of results. `junctions`: as
// of `Condition`.
inline int64_t open_session(Rows numbers, Rows junctions) {
    Session *session = zeros<Session>(1);
    if (!session) return 0;
    Session &of = *session;
    const int64_t *next = numbers.data, cores = of.cores = *next++;
    of.tests = *next++, of.width = head + 3 * of.tests, of.every = *next++, of.slice = *next++, of.total = *next++;
    of.block = *next++, of.threshold = *next++, of.kind = *next++;
    for (int64_t &rows : of.rows) rows = *next++;
    for (uint64_t &length : of.lengths) length = word(*next++);
    for (bool &timed : of.timed) timed = *next++;
    const int64_t places = of.places = *next++, of_results = *next++, width = of.width;
    of.junctions = junctions;
    for (Segment &window : of.windows) window.columns = head + of.tests;
    of.shared = zeros<int64_t>((4 + 4 * cores) * apart);
    bool is_made = of.shared;
    for (Queue *&queues : of.of_cores) is_made = (queues = zeros<Queue>(cores)) && is_made;
    if (of.kind == gates)
        is_made = is_made && of.gate_in.make(width, 2, 2, cores, cores) &&
                  of.gate_out.make(result_words, cores, cores, 1, 1);
    is_made = is_made && (of.kind == gates || of.input[0].make(width, places, of.kind == chain ? 1 : cores));
    is_made = is_made && (of.kind != chain || of.input[1].make(width, places));
    for (int64_t core = 0; is_made && core < cores; core++) {
        is_made = of.results()[core].make(result_words, of_results);
        if (of.kind == chain && core < cores - 1)
            is_made = is_made && of.right()[core].make(width, places) && of.left()[core].make(width, places);
    }
    if (is_made) return reinterpret_cast<int64_t>(session);
    close_session(reinterpret_cast<int64_t>(session));
    return 0;
}

// Have all cores end.
inline void stop_session(int64_t address) { release(reinterpret_cast<Session *>(address)->word_of(0), int64_t{1}); }

// Let slices of inner order have `slice` comparisons of a core from the next tuple on, when all others are done; 0 leaves
// them as they are. Returns the nanoseconds for which all cores together have waited until the merger took results.
inline int64_t adjust(int64_t address, int64_t slice) {
    Session &session = *reinterpret_cast<Session *>(address);
    if (slice) session.slice = slice;
    int64_t waited = 0;
    for (int64_t core = 0; core < session.cores; core++) waited += acquire(session.waited_of(core));
    return waited;
}

// The loop of a session's first thread: it sends one message after the other, and takes results meanwhile.
struct Feeder {
    Session &session;
    RowsOut items;
    int64_t written = 0;

    Feeder(int64_t address, RowsOut results) : session(*reinterpret_cast<Session *>(address)), items(results) {}
    int64_t merged() { return session.kind == gates ? take_results(session, items, written) : merge(session, items, written); }

    // Wait for `ready`, and take results meanwhile. Returns false if there is no room for more of them, or no memory.
    template <typename F>
    bool wait(F ready) {
        for (int64_t looks = 1; !ready(); looks++) {
            written = merged();
            if (written + item_words > items.size || acquire(session.word_of(1))) return false;
            rest(looks);
        }
        return true;
    }
    bool put(const Queue &queue, const int64_t *message, int64_t kind, int64_t row) {
        if (!wait([&] { return queue.room() != nullptr; })) return false;
        int64_t *place = queue.room();
        for (int64_t n = 0; n < session.width; n++) place[n] = message[n];
        place[of_kind] = kind, place[of_row] = row;
        queue.publish();
        return true;
    }
    // Tell the far end of the chain of the tuples of stream `of` before `start`, which the next one of the other does not see.
    bool expire(const int64_t *message, int64_t of, int64_t start) {
        for (; session.expired[of] < start; session.expired[of]++)
            if (!put(session.input[1 - of], message, expire_r + of, session.expired[of])) return false;
        return true;
    }
    // Store a tuple of CellJoin where the workers find it, which still read those that an earlier probe saw.
    bool store(int64_t side, const int64_t *message) {
        Segment &mine = session.windows[side];
        if (mine.length() == mine.size) {
            if (!wait([&] { return session.input[0].is_read(); })) return false;
            mine.first = session.expired[side];
            if (2 * mine.length() > mine.size && !mine.grow()) return session.fail(), false;  // not to wait again soon
        }
        if (mine.push(message)) return true;
        session.fail();
        return false;
    }
    // Have the source of `side` reach `time`, without a tuple: there are four times at each place, of which tuples have the
    // first.
    bool reach(int64_t side, int64_t time) {
        session.latest[side] = (time + 1) / 4;
        return session.gate_in.add(side, time, side, &at_end, 1) || (session.fail(), false);
    }
    // Add a tuple to its stream's source, while no reader is `places` behind.
    bool add(int64_t side, const int64_t *message) {
        const int64_t place = message[of_place];
        if (place - session.latest[1 - side] > session.places / 4 && !reach(1 - side, 4 * place - 1)) return false;
        if (!wait([&] {
                for (int64_t r = 0; place >= session.places && r < session.cores; r++)
                    if (acquire(session.gate_in.passed_by(r)) < 4 * (place - session.places)) return false;
                return true;
            }))
            return false;
        session.latest[side] = place;
        return session.gate_in.add(side, 4 * place, side, message, session.width) || (session.fail(), false);
    }
    // Returns false if the message has to be fed again, as there was no room for results.
    bool feed(const int64_t *message) {
        const int64_t side = message[of_kind];
        if (side == at_end) {
            return session.kind != chain ||
                   (expire(message, 0, session.counts[0]) && expire(message, 1, session.counts[1]));
        }
        const int64_t start = message[of_start];
        if (session.kind == chain) {
            if (!expire(message, 1 - side, start) || !put(session.input[side], message, side, message[of_row]))
                return false;
        } else if (session.kind == broadcast) {
            if (!put(session.input[0], message, side, message[of_row])) return false;
        } else if (session.kind == gates) {
            if (!add(side, message)) return false;
        } else {
            if (!wait([&] { return session.input[0].room() != nullptr; })) return false;
            session.expired[1 - side] = greatest_of(session.expired[1 - side], start);
            if (!store(side, message)) return false;
            int64_t *place = session.input[0].room();
            for (int64_t n = 0; n < session.width; n++) place[n] = message[n];
            place[of_place] = start, place[of_start] = session.windows[1 - side].end;
            session.input[0].publish();
        }
        session.counts[side]++;
        return true;
    }
    // True if all that was fed is done, but for results in queues: of a chain, behind the end of input.
    bool is_done() const {
        if (session.kind == gates) return session.stars == session.cores * (session.counts[0] + session.counts[1]);
        if (session.kind != chain) return session.input[0].is_read();
        return acquire(session.gone(0)) == session.counts[0] && acquire(session.gone(1)) == session.counts[1];
    }
};

// Feed `messages` from number `progress[0]` on, which is where to go on, and write results to `items` meanwhile. Returns
// the words of results, which may fill `items`; -1 without memory. `accepted`: gets the time of each message, if it has
// elements; `pace`: nanoseconds from one to the next, at least.
inline int64_t feed(int64_t address, Rows messages, int64_t pace, RowsOut accepted, RowsOut progress, RowsOut items) {
    Feeder feeder(address, items);
    const int64_t width = feeder.session.width;
    for (int64_t &n = progress[0]; n < messages.size / width; n++) {
        if (pace && !feeder.wait([&] { return now() >= progress[1]; })) break;
        if (pace) progress[1] = greatest_of(progress[1], now() - 1'000 * pace) + pace;
        if (accepted.size) accepted[n] = pace ? progress[1] - pace : now();
        if (!feeder.feed(messages.data + n * width)) break;
    }
    return acquire(feeder.session.word_of(1)) ? -1 : feeder.written;
}

// Write results to `items`: with `waits`, all of what was fed, and then `progress[0]` is set to 1; else those at hand.
// The other words of `progress` get rows of R and S before which all tuples have left a chain. Returns as `feed`.
inline int64_t collect(int64_t address, int64_t waits, RowsOut progress, RowsOut items) {
    Feeder feeder(address, items);
    const int64_t last = feeder.session.counts[0] + feeder.session.counts[1] - 1;
    // The last tuple is ready when both sources are behind it, and what the cores then say, when they are once more.
    if (waits && feeder.session.kind == gates && feeder.session.reached <= last) {
        for (int64_t n = 0; n < 4; n++)
            if (!feeder.reach(n & 1, 4 * last + 1 + n / 2)) return -1;
        feeder.session.reached = last + 1;
    }
    for (int64_t side = 0; side < 2; side++) progress[1 + side] = acquire(feeder.session.gone(side));
    const bool goes_on = !waits || feeder.wait([&] { return feeder.is_done(); });
    feeder.written = feeder.merged();
    progress[0] = waits && goes_on && feeder.written + item_words <= items.size;
    return acquire(feeder.session.word_of(1)) ? -1 : feeder.written;
}

}  // namespace splitjoin
