// The functions of harness.cpp for a model that writes its waveforms, in the format that it was translated for.
//
// The harness knows its model as Vsplitjoin. Here that name stands for a class which records every cycle: half
// a period before each rising edge the signals that the edge sees, with the edge those behind it.

#include <string>

#include "Vsplitjoin.h"
#include "verilated.h"

#if VM_TRACE_FST
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#else
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#endif

namespace {

constexpr uint64_t kPeriod = 10'000;  // ps

thread_local std::string trace_path;  // of the model that this thread opens next

class Traced : public Vsplitjoin {
public:
    explicit Traced(VerilatedContext* context) : Vsplitjoin{prepared(context)} {
        trace(&trace_, 99);
        trace_.open(trace_path.c_str());
    }

    ~Traced() override { trace_.close(); }

    void eval() {
        if (clk && !high_) {
            clk = 0;  // some callers set inputs with the edge
            Vsplitjoin::eval();
            trace_.dump(time_ + kPeriod / 2);
            clk = 1;
            Vsplitjoin::eval();
            trace_.dump(time_ += kPeriod);
        } else {
            Vsplitjoin::eval();
        }
        high_ = clk;
    }

private:
    static VerilatedContext* prepared(VerilatedContext* context) {
        context->traceEverOn(true);
        return context;
    }

    Trace trace_;
    uint64_t time_ = 0;
    bool high_ = false;
};

}  // namespace

#define Vsplitjoin Traced
#include "harness.cpp"

// The file of the model that this thread opens next.
extern "C" void sj_trace(const char* path) { trace_path = path; }
