// Drives many circuits with streams at once, each from its lines of standard input: a seed of pauses, how many operands
// and results, and these as numbers in base 16. Prints a line for each circuit that is wrong.
#include "Vtop.h"
#include "verilated.h"
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <vector>

struct Circuit {
    std::mt19937 random;
    bool pauses = false, valid = false, ready = false;
    std::vector<uint64_t> operands;
    std::vector<std::string> results, found;
    size_t sent = 0;
    std::string wrong;
};

static std::string text(const VlWide<WORDS>& value) {
    std::string out;
    char part[9];
    for (int n = WORDS - 1; n >= 0; --n) {
        std::snprintf(part, sizeof part, "%08x", value[n]);
        out += part;
    }
    return out;
}

int main() {
    VerilatedContext context;
    Vtop top{&context};
    std::vector<Circuit> all(CIRCUITS);
    for (auto& c : all) {
        unsigned seed, operands, results;
        std::cin >> seed >> operands >> results;
        c.random.seed(seed);
        c.pauses = seed % 4;
        c.operands.resize(operands);
        c.results.resize(results);
        for (auto& v : c.operands) std::cin >> std::hex >> v >> std::dec;
        for (auto& v : c.results) std::cin >> v;
    }
    for (long cycle = 0; cycle < LIMIT; ++cycle) {
        bool reset = cycle < 4;
        top.clk = 0;
        top.rst = reset;
        for (int n = 0; n < CIRCUITS; ++n) {
            auto& c = all[n];
            if (!c.valid) c.valid = !reset && c.sent < c.operands.size() && !(c.pauses && c.random() % 3 == 0);
            c.ready = !reset && !(c.pauses && c.random() % 3 == 0);
            top.i_valid[n] = c.valid;
            top.i_payload[n] = c.valid ? c.operands[c.sent] : c.random();
            top.o_ready[n] = c.ready;
        }
        top.eval();
        for (int n = 0; n < CIRCUITS && !reset; ++n) {
            auto& c = all[n];
            if (c.ready && top.o_valid[n]) c.found.push_back(text(top.o_payload[n]));
            if (c.valid && top.i_ready[n]) c.sent += 1, c.valid = false;
        }
        top.clk = 1;
        top.eval();
    }
    for (int n = 0; n < CIRCUITS; ++n) {
        auto& c = all[n];
        size_t at = 0;
        while (at < c.found.size() && at < c.results.size() && c.found[at] == c.results[at]) ++at;
        if (at < c.results.size() || at < c.found.size())
            std::printf("%d result %zu is %s, but must be %s\n", n, at, at < c.found.size() ? c.found[at].c_str() : "none",
                        at < c.results.size() ? c.results[at].c_str() : "none");
    }
    std::puts("end");
}
