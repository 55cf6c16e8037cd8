// Low-latency handshake join (Roy, Teubner and Gemulla, 2014): a tuple is handed on ahead of joining, and stored in one
// core, its home.
#pragma once

#include "parts.hpp"

namespace splitjoin {

// One core of the chain. A pair has three places to meet, and takes one:
//
// - R's tuple finds S's at the home of that, if it was stored there before.
// - Else S's finds R's at R's home. From its own home on it is compared only with those of R that had come there before
//   it, whose number it brings along.
// - Else they pass each other on a link between both homes. A core keeps each tuple of S that it has sent on until its
//   acknowledgement, and of those R's tuple finds the ones whose home it has passed, if its own is here or ahead.
//
// An expiry enters at the far end, waits there until its tuple has come by, and goes through all cores.
inline int64_t low_latency_core(int64_t address, int64_t core) {
    const Session &session = *reinterpret_cast<const Session *>(address);
    const bool first = core == 0, last = core == session.cores - 1;
    const Queue &in_right = first ? session.input[0] : session.right()[core - 1];
    const Queue &in_left = last ? session.input[1] : session.left()[core];
    const Queue *out_right = last ? nullptr : session.right() + core, *out_left = first ? nullptr : session.left() + core - 1;
    const Matcher matcher(session);
    Segment stored[2] = {Segment(head + session.tests), Segment(head + session.tests)}, flying(head + session.tests);
    int64_t came[2] = {0, 0};
    if (!matcher) return session.fail(), 0;

    const auto pairs = [&](const Segment &of, const int64_t *message, auto meets) {
        const int64_t side = message[of_kind], row = message[of_row];
        return matcher.scan(of, of.first, of.end, message, [&](int64_t position) {
            const int64_t met = of.at(of_row, position);
            const int64_t later = of.at(of_place, position) > message[of_place] ? 1 - side : side;
            return !meets(met) || session.give(core, of_pair, later, side ? met : row, side ? row : met);
        });
    };
    const auto pass_on = [&](const Queue *out, const int64_t *message) {
        if (!out) return;
        int64_t *further = out->room();
        for (int64_t n = 0; n < session.width; n++) further[n] = message[n];
        out->publish();
    };
    // Take a message from the left: 1 if it was taken, 0 if it has to wait, -1 if the session stops.
    const auto from_left = [&]() -> int64_t {
        const int64_t *message = in_right.front();
        if (!message) return 0;
        const int64_t kind = message[of_kind], row = message[of_row], cores = session.cores;
        if (kind == acknowledge) {
            flying.first++;
        } else {
            if ((kind == expire_s && first && came[1] <= row) || (out_right && !out_right->room())) return 0;
            if (kind == tuple_r) {
                pass_on(out_right, message);
                if (!pairs(stored[1], message, [](int64_t) { return true; }) ||
                    !pairs(flying, message, [&](int64_t s) { return s % cores < core && row % cores >= core; }))
                    return -1;
                if (row % cores == core && !stored[0].push(message)) return session.fail(), -1;
                came[0]++;
            } else {
                if (row % cores == core) stored[1].first++;
                if (last) release(session.gone(1), row + 1);
                pass_on(out_right, message);
            }
        }
        in_right.pop();
        return 1;
    };
    const auto from_right = [&]() -> int64_t {
        const int64_t *message = in_left.front();
        if (!message) return 0;
        const int64_t kind = message[of_kind], row = message[of_row], home = row % session.cores;
        if ((kind == expire_r && last && came[0] <= row) || (out_left && !out_left->room()) ||
            (kind == tuple_s && out_right && !out_right->room()))
            return 0;
        if (kind == tuple_s) {
            if (out_right) {
                int64_t *answer = out_right->room();
                answer[of_kind] = acknowledge;
                out_right->publish();
            }
            if (out_left) {
                if (!flying.push(message)) return session.fail(), -1;
                int64_t *further = out_left->room();
                for (int64_t n = 0; n < session.width; n++) further[n] = message[n];
                if (home == core) further[of_start] = came[0];
                out_left->publish();
            }
            const int64_t before = message[of_start];
            if (!pairs(stored[0], message, [&](int64_t r) { return core >= home || r < before; })) return -1;
            if (home == core && !stored[1].push(message)) return session.fail(), -1;
            came[1]++;
        } else {
            if (home == core) stored[0].first++;
            if (first) release(session.gone(0), row + 1);
            pass_on(out_left, message);
        }
        in_left.pop();
        return 1;
    };
    for (int64_t looks = 1;; looks++) {
        const int64_t left = from_left(), right = left < 0 ? -1 : from_right();
        if (left < 0 || right < 0) return 0;
        if (left + right) {
            looks = 0;
            continue;
        }
        if (session.stops()) return 0;
        rest(looks);
    }
}

}  // namespace splitjoin
