// The compiled loops of the CPU engine, as one library: `splitjoin_loops` lists them.
#include "as_of_join.hpp"
#include "codes.hpp"
#include "fused_batch.hpp"
#include "gather.hpp"
#include "hash_join.hpp"
#include "index.hpp"
#include "key_ranges.hpp"
#include "kinds.hpp"
#include "nested.hpp"
#include "ranges.hpp"
#include "runs.hpp"
#include "streams.hpp"
#include "sums.hpp"
#include "windows.hpp"

namespace splitjoin {
namespace {

constexpr Entry entries[] = {
    SPLITJOIN_LOOP(stored_counts), SPLITJOIN_LOOP(stored_scatter), SPLITJOIN_LOOP(probe_counts),
    SPLITJOIN_LOOP(probe_scatter), SPLITJOIN_LOOP(sort_partition), SPLITJOIN_LOOP(probe_ranges),
    SPLITJOIN_LOOP(expand), SPLITJOIN_LOOP(within), SPLITJOIN_LOOP(in_windows), SPLITJOIN_LOOP(keep_met),
    SPLITJOIN_LOOP(expand_within), SPLITJOIN_LOOP(pack), SPLITJOIN_LOOP(packed_counts), SPLITJOIN_LOOP(packed_scatter),
    SPLITJOIN_LOOP(unpack), SPLITJOIN_LOOP(extremes), SPLITJOIN_LOOP(add_dense), SPLITJOIN_LOOP(fill_table),
    SPLITJOIN_LOOP(move_table), SPLITJOIN_LOOP(add_hashed), SPLITJOIN_LOOP(by_row), SPLITJOIN_LOOP(least_rows),
    SPLITJOIN_LOOP(fold_greatest), SPLITJOIN_LOOP(mark_met), SPLITJOIN_LOOP(mark_late), SPLITJOIN_LOOP(first_beyond),
    SPLITJOIN_LOOP(first_rows), SPLITJOIN_LOOP(mark_equal), SPLITJOIN_LOOP(count_in_order),
    SPLITJOIN_LOOP(pairs_in_order), SPLITJOIN_LOOP(pairs_in_time), SPLITJOIN_LOOP(group_sums),
    SPLITJOIN_LOOP(merged_counts), SPLITJOIN_LOOP(merge_positions), SPLITJOIN_LOOP(last_of_group),
    SPLITJOIN_LOOP(first_of_group), SPLITJOIN_LOOP(note_rows), SPLITJOIN_LOOP(nearer), SPLITJOIN_LOOP(drop_far),
    SPLITJOIN_LOOP(decision_times), SPLITJOIN_LOOP(text_words),
    SPLITJOIN_LOOP(float_extent), SPLITJOIN_LOOP(float_prefixes), SPLITJOIN_LOOP(range_float_sums),
    SPLITJOIN_LOOP(range_deviations), SPLITJOIN_LOOP(order_groups), SPLITJOIN_LOOP(places_in_groups),
    SPLITJOIN_LOOP(wavelet_levels), SPLITJOIN_LOOP(wavelet_select), SPLITJOIN_LOOP(range_frequencies),
    SPLITJOIN_LOOP(merge_times), SPLITJOIN_LOOP(find_places), SPLITJOIN_LOOP(summarize), SPLITJOIN_LOOP(search_part),
    SPLITJOIN_LOOP(nested_loops), SPLITJOIN_LOOP(take_rows<uint8_t>), SPLITJOIN_LOOP(take_rows<uint16_t>),
    SPLITJOIN_LOOP(take_rows<uint32_t>), SPLITJOIN_LOOP(take_rows<uint64_t>), SPLITJOIN_LOOP(band_bounds),
    {"code_part", "", nullptr, code_part}, SPLITJOIN_LOOP(extent), {"count_part", "", nullptr, count_part},
    {"place_part", "", nullptr, place_part}, {"divide_part", "", nullptr, divide_part},
    {"narrow_part", "", nullptr, narrow_part}, {"prepare", "", nullptr, prepare}, {"work", "", nullptr, work},
    SPLITJOIN_LOOP(write_levels<uint32_t>), SPLITJOIN_LOOP(write_levels<uint64_t>),
    SPLITJOIN_LOOP(bound_levels<uint32_t>), SPLITJOIN_LOOP(bound_levels<uint64_t>),
#if SPLITJOIN_LEVEL <= 2  // what wider vectors do not help is there once
    SPLITJOIN_LOOP(spread_arrivals), SPLITJOIN_LOOP(note_items), SPLITJOIN_LOOP(write_rows), SPLITJOIN_LOOP(sort_run),
    SPLITJOIN_LOOP(walk_order), SPLITJOIN_LOOP(by_probe), SPLITJOIN_LOOP(walk_part), SPLITJOIN_LOOP(claim),
    SPLITJOIN_LOOP(complete), SPLITJOIN_LOOP(stop), SPLITJOIN_LOOP(summon), SPLITJOIN_LOOP(withdraw),
    SPLITJOIN_LOOP(lend), SPLITJOIN_LOOP(keep), SPLITJOIN_LOOP(dismiss), SPLITJOIN_LOOP(share), SPLITJOIN_LOOP(alone),
    SPLITJOIN_LOOP(attend), SPLITJOIN_ENTRY(do_parts), SPLITJOIN_LOOP(lay_out), SPLITJOIN_LOOP(lay_out_for_one),
    SPLITJOIN_LOOP(collect), SPLITJOIN_LOOP(find_matches), SPLITJOIN_LOOP(exact_keys<uint32_t>),
    SPLITJOIN_LOOP(exact_keys<uint64_t>), SPLITJOIN_LOOP(float_keys<float>), SPLITJOIN_LOOP(float_keys<double>),
    SPLITJOIN_LOOP(exact_bounds<uint32_t>), SPLITJOIN_LOOP(exact_bounds<uint64_t>),
    SPLITJOIN_LOOP(ordered_bounds<uint32_t, uint32_t>), SPLITJOIN_LOOP(ordered_bounds<uint32_t, uint64_t>),
    SPLITJOIN_LOOP(ordered_bounds<uint64_t, uint32_t>), SPLITJOIN_LOOP(ordered_bounds<uint64_t, uint64_t>),
    {"void_part", "", nullptr, void_part}, SPLITJOIN_LOOP(write_items), SPLITJOIN_ENTRY(gather),
    SPLITJOIN_LOOP(index_words), SPLITJOIN_LOOP(build_grid),
#endif
    {nullptr, nullptr, nullptr, nullptr},
};

}  // namespace
}  // namespace splitjoin

#include "processors.hpp"
