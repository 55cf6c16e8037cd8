// The part of LZ4 that Verilator's writer of FST files calls, so that traces need no library of the system.
//
// A block of LZ4 is a sequence of literals and of copies of earlier bytes (github.com/lz4/lz4, doc/lz4_Block_format.md).
// The search is greedy: for each place, the last one at which the same four bytes hashed alike.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

// Compresses `size` bytes of `source` into `target`, which has room for LZ4_compressBound(size); returns its length.
inline int LZ4_compress_default(const char* source, char* target, int size, int) {
    constexpr int kMatch = 4, kLastLiterals = 5, kLastMatch = 12, kFarthest = 65535, kHashBits = 13;
    const uint8_t* const in = reinterpret_cast<const uint8_t*>(source);
    uint8_t* out = reinterpret_cast<uint8_t*>(target);
    std::vector<int> last(1 << kHashBits, -1);

    const auto length = [&](int rest) {  // what a nibble of 15 does not say of a length
        for (; rest >= 255; rest -= 255) *out++ = 255;
        *out++ = static_cast<uint8_t>(rest);
    };
    const auto literals = [&](int from, int to, int copied) {
        const int count = to - from;
        *out++ = static_cast<uint8_t>((count < 15 ? count : 15) << 4 | (copied < 15 ? copied : 15));
        if (count >= 15) length(count - 15);
        if (count) std::memcpy(out, in + from, count);
        out += count;
    };

    int from = 0;
    for (int at = 0; at + kLastMatch <= size;) {
        uint32_t word;
        std::memcpy(&word, in + at, sizeof word);
        int& place = last[word * 2654435761u >> (32 - kHashBits)];
        const int before = place;
        place = at;
        if (before < 0 || at - before > kFarthest || std::memcmp(in + before, in + at, kMatch) != 0) {
            ++at;
            continue;
        }
        int n = kMatch;
        while (at + n < size - kLastLiterals && in[before + n] == in[at + n]) ++n;
        literals(from, at, n - kMatch);
        *out++ = static_cast<uint8_t>(at - before);
        *out++ = static_cast<uint8_t>((at - before) >> 8);
        if (n - kMatch >= 15) length(n - kMatch - 15);
        from = at += n;
    }
    literals(from, size, 0);
    return static_cast<int>(out - reinterpret_cast<uint8_t*>(target));
}
