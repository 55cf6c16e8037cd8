// Comparisons of many bytes at once, whose outcomes are bits.
#pragma once

#include "loop.hpp"

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

}  // namespace splitjoin
