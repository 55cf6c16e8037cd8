// The end of a library's source: what Python asks for its loops.
#pragma once

// All loops of a library, `entries`; the last one has no name. Of x86-64 there are versions for several levels of
// processors (`build.py`), each in a namespace and with a list of its own, which may have only what wider vectors help.
#define SPLITJOIN_LIST(level) splitjoin_loops_v##level
#if SPLITJOIN_LEVEL > 2
#define SPLITJOIN_LISTED(level) SPLITJOIN_LIST(level)
extern "C" const void *SPLITJOIN_LISTED(SPLITJOIN_LEVEL)() { return splitjoin::entries; }
#else
#if SPLITJOIN_LEVEL == 2
#include <cpuid.h>

extern "C" const void *SPLITJOIN_LIST(3)(), *SPLITJOIN_LIST(4)();

// The level of this processor, as far as the system saves its registers, too.
static int64_t level_here() {
    constexpr uint32_t avx2 = 1 << 3 | 1 << 5 | 1 << 8, avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    uint32_t a, b, c, d, saved, high, old, extended, fields;
    if (!__get_cpuid(1, &a, &b, &old, &d) || !__get_cpuid_count(7, 0, &a, &fields, &c, &d) ||
        !__get_cpuid(0x80000001, &a, &b, &extended, &d) || (old & 0x28401000) != 0x28401000 || !(extended & 32))
        return 2;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((fields & avx2) != avx2 || (saved & 6) != 6) return 2;
    return (fields & avx512) == avx512 && (saved & 0xe6) == 0xe6 ? 4 : 3;
}
#endif

// Those of the highest level up to `most` that this processor has.
extern "C" __attribute__((visibility("default"))) const void *splitjoin_loops(int64_t most) {
#if SPLITJOIN_LEVEL == 2
    const int64_t level = splitjoin::least_of(most, level_here());
    if (level >= 3) return level == 3 ? SPLITJOIN_LIST(3)() : SPLITJOIN_LIST(4)();
#endif
    static_cast<void>(most);
    return splitjoin::entries;
}
#endif
