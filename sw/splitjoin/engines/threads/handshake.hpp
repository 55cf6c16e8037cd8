// Handshake join (Teubner and Mueller, 2011): R goes through a chain of cores from the left, S from the right.
#pragma once

#include "parts.hpp"

namespace splitjoin {

// One core of the chain, with a segment of both windows.
//
// A tuple that arrives is compared with the segment of the other stream, and stored. The oldest goes on if this core has
// more of them than the next one, with those on the way. A tuple of S that was sent on stays until its acknowledgement,
// so that tuples of R that pass it on the way meet it here; a tuple of R leaves when it is sent. The acknowledgement goes
// the way of R: behind all tuples of R that the next core had sent before the tuple of S came, and ahead of those that it
// has compared with it. So each pair meets once.
//
// Expiries enter at the far end of the chain, ahead of the first tuple that does not meet them any more, and wait
// there until the tuple has come.
struct HandshakeCore {
    const Session &session;
    const int64_t core;
    const bool first, last;
    const Queue &in_right, &in_left;      // from the left and from the right neighbour, or what enters there
    const Queue *out_right, *out_left;
    const Matcher matcher;
    Segment stored[2];
    int64_t copies = 0;                   // of S, the first of those stored: sent on, and not acknowledged
    int64_t sent[2] = {0, 0}, left[2] = {0, 0}, due[2] = {0, 0};  // due: of a block that is being sent
    int64_t received = 0;                 // of a block of S that is arriving

    HandshakeCore(const Session &of, int64_t number)
        : session(of), core(number), first(!number), last(number == of.cores - 1),
          in_right(first ? of.input[0] : of.right()[number - 1]), in_left(last ? of.input[1] : of.left()[number]),
          out_right(last ? nullptr : of.right() + number), out_left(first ? nullptr : of.left() + number - 1), matcher(of),
          stored{Segment(of.width), Segment(of.width)} {}

    int64_t unsent(int64_t side) const { return stored[side].length() - (side ? copies : 0); }
    void leave(int64_t side) {
        stored[side].first++;
        release(session.left_of(core, side), ++left[side]);
    }

    // Compare a tuple that arrives, and store it. Returns false if the session stops.
    bool arrive(const int64_t *message) {
        const int64_t side = message[of_kind], row = message[of_row];
        const Segment &other = stored[1 - side];
        const bool goes_on = matcher.scan(other, other.first, other.end, message, [&](int64_t position) {
            const int64_t met = other.at(of_row, position);
            const int64_t later = other.at(of_place, position) > message[of_place] ? 1 - side : side;
            return session.give(core, of_pair, later, side ? met : row, side ? row : met);
        });
        if (goes_on && !stored[side].push(message)) session.fail();
        return goes_on;
    }

    // Take a message of the way of `side`. Returns 1 if it was taken, 0 if it has to wait, and -1 if the session stops.
    int64_t take(int64_t side) {
        const Queue &queue = side ? in_left : in_right;
        const int64_t *message = queue.front();
        if (!message) return 0;
        const int64_t kind = message[of_kind];
        if (kind == side) {
            int64_t *answer = nullptr;
            // A block of S is answered behind its last tuple.
            if (side && !last && message[of_start] && !(answer = out_right->room())) return 0;
            if (!arrive(message)) return -1;
            if (side && !last) received++;
            if (answer) {
                answer[of_kind] = acknowledge, answer[of_row] = received;
                out_right->publish();
                received = 0;
            }
        } else if (kind == acknowledge) {
            for (int64_t n = message[of_row]; n; n--, copies--) leave(1);
        } else {  // what expires enters where its stream ends, and is the oldest there
            const int64_t of = kind - expire_r;
            if (!unsent(of)) return 0;
            leave(of);
            release(session.gone(of), message[of_row] + 1);
        }
        queue.pop();
        return 1;
    }

    // Say whether tuples of `side` must come through this core, as one must expire behind it.
    bool wants(int64_t side) const {
        if (unsent(side)) return false;
        if (side ? !first : !last) return acquire(session.wants_of(core + (side ? -1 : 1), side)) != 0;
        const int64_t *message = (side ? in_right : in_left).front();
        return message && message[of_kind] == expire_r + side;
    }

    // Send the oldest tuple of `side` on, if it is its turn. Returns 1 if so.
    int64_t send(int64_t side) {
        const Queue *out = side ? out_left : out_right;
        if (!out || !unsent(side) || (!side && received)) return 0;
        const int64_t next = core + (side ? -1 : 1);
        if (!due[side]) {
            const int64_t ahead = sent[side] - acquire(session.left_of(next, side));  // in the next core, or on the way
            if (unsent(side) >= ahead + session.threshold && unsent(side) >= session.block)
                due[side] = session.block;
            else if (acquire(session.wants_of(next, side)))
                due[side] = 1;
            else
                return 0;
        }
        int64_t *message = out->room();
        if (!message) return 0;
        stored[side].write(stored[side].first + (side ? copies : 0), message);
        message[of_start] = --due[side] == 0;
        sent[side]++;
        if (side)
            copies++;
        else
            leave(0);
        out->publish();
        return 1;
    }

    void run() {
        int64_t wanted[2] = {0, 0};
        for (int64_t looks = 1;; looks++) {
            int64_t done = 0;
            for (int64_t side = 0; side < 2; side++) {
                const int64_t taken = take(side);
                if (taken < 0) return;
                done += taken + send(side);
                if (const int64_t is = wants(side); is != wanted[side]) {
                    release(session.wants_of(core, side), wanted[side] = is);
                    done++;
                }
            }
            if (done) {
                looks = 0;
                continue;
            }
            if (session.stops()) return;
            rest(looks);
        }
    }
};

inline int64_t handshake_core(int64_t address, int64_t core) {
    const Session &session = *reinterpret_cast<const Session *>(address);
    HandshakeCore mine(session, core);
    if (!mine.matcher) return session.fail(), 0;
    mine.run();
    return 0;
}

}  // namespace splitjoin
